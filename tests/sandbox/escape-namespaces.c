/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* New and other namespaces, by every call and flag. */

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "escape.h"

#define GET_PARENT 0xb702UL /* NS_GET_PARENT */
#define HIGH (UINT64_C(1) << 32)

struct arguments {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

static long try_unshare(const char *flags) {
        return syscall(SYS_unshare, number(flags));
}

static long ended(long pid) {
        if (pid == 0)
                _exit(0);
        return child_result(pid);
}
static long try_clone(const char *flags) {
        return ended(syscall(SYS_clone, number(flags) | SIGCHLD, 0, 0, 0, 0));
}
static long try_clone3(const char *flags) {
        struct arguments arguments = {.flags = number(flags), .exit_signal = SIGCHLD};
        return ended(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}
static long try_setns(const char *name) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                broken(path);
        return setns(fd, 0);
}
static long try_setns_process(const char *flags) {
        long fd = syscall(SYS_pidfd_open, getppid(), 0);
        if (fd < 0)
                broken("pidfd_open");
        return setns((int) fd, (int) number(flags));
}
/* Of a namespace that is the caller's own the parent is out of reach; where a new one could be made it is not. */
static long try_parent(const char *a) {
        (void) a;
        (void) unshare(CLONE_NEWPID);
        pid_t pid = fork();
        if (pid < 0)
                broken("fork");
        if (pid == 0) {
                (void) pause();
                _exit(0);
        }
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int) pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                broken(path);
        long r = ioctl(fd, GET_PARENT);
        int error = errno;
        (void) kill(pid, SIGKILL);
        errno = error;
        return r;
}

/* The limits of the user namespace stop those too that the filter would not. */
#define NEW (STOP_SECCOMP | STOP_NETWORK)
#define UNSHARE(n, flag, o) \
        {.name = "unshare-" n, .what = n " namespace by unshare", .try = try_unshare, .argument = flag, .error = EPERM, \
         .stops = NEW | (o ? STOP_PRIVILEGE : 0), .off = o, .ids = "C041 T017"}
#define CLONE(n, flag, o) \
        {.name = "clone-" n, .what = n " namespace by clone", .try = try_clone, .argument = flag, .error = EPERM, \
         .stops = NEW | (o ? STOP_PRIVILEGE : 0), .off = o, .ids = "C041 T017"}
#define CLONE3(n, flag, o) \
        {.name = "clone3-" n, .what = n " namespace by clone3, whose flags no filter sees", .try = try_clone3, .argument = flag, \
         .error = ENOSYS, .stops = NEW | (o ? STOP_PRIVILEGE : 0), .off = o, .ids = "C040 T018"}
#define SETNS(n) \
        {.name = "setns-" n, .what = n " namespace by descriptor", .try = try_setns, .argument = n, .error = EPERM, \
         .stops = STOP_SECCOMP | STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "C042 T017"}
#define SETNS_PROCESS(n, flag) \
        {.name = "setns-process-" n, .what = n " namespace of a process", .try = try_setns_process, .argument = flag, .error = EPERM, \
         .stops = STOP_SECCOMP | STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "C042 T017"}

static const Attempt rows[] = {
        UNSHARE("user", "0x10000000", OFF_PLAIN), UNSHARE("mount", "0x20000", OFF_PRIVATE), UNSHARE("pid", "0x20000000", OFF_PRIVATE),
        UNSHARE("net", "0x40000000", OFF_PRIVATE), UNSHARE("ipc", "0x08000000", OFF_PRIVATE), UNSHARE("uts", "0x04000000", OFF_PRIVATE),
        UNSHARE("cgroup", "0x02000000", OFF_PRIVATE), UNSHARE("time", "0x80", OFF_PRIVATE), UNSHARE("user-mount", "0x10020000", OFF_PLAIN),
        UNSHARE("user-net", "0x50000000", OFF_PLAIN), UNSHARE("user-all", "0x7e020080", OFF_PLAIN),
        CLONE("user", "0x10000000", OFF_PLAIN), CLONE("mount", "0x20000", OFF_PRIVATE), CLONE("pid", "0x20000000", OFF_PRIVATE),
        CLONE("net", "0x40000000", OFF_PRIVATE), CLONE("ipc", "0x08000000", OFF_PRIVATE), CLONE("uts", "0x04000000", OFF_PRIVATE),
        CLONE("cgroup", "0x02000000", OFF_PRIVATE), CLONE("user-high-bits", "0x110000000", OFF_PLAIN), CLONE("user-all", "0x7e020000", OFF_PLAIN),
        {.name = "clone3", .what = "a process by a call whose flags no filter sees", .try = try_clone3, .argument = "0", .error = ENOSYS,
         .stops = STOP_SECCOMP, .ids = "C040 T018"},
        CLONE3("user", "0x10000000", OFF_PLAIN), CLONE3("mount", "0x20000", OFF_PRIVATE), CLONE3("pid", "0x20000000", OFF_PRIVATE),
        CLONE3("net", "0x40000000", OFF_PRIVATE), CLONE3("ipc", "0x08000000", OFF_PRIVATE), CLONE3("uts", "0x04000000", OFF_PRIVATE),
        CLONE3("cgroup", "0x02000000", OFF_PRIVATE), CLONE3("time", "0x80", OFF_PRIVATE), CLONE3("user-all", "0x7e020000", OFF_PLAIN),
        SETNS("mnt"), SETNS("pid"), SETNS("net"), SETNS("ipc"), SETNS("uts"), SETNS("cgroup"),
        SETNS_PROCESS("net", "0x40000000"), SETNS_PROCESS("mount", "0x20000"),
        {.name = "namespace-parent", .what = "a descriptor of the namespace outside", .try = try_parent, .error = EPERM,
         .stops = STOP_SECCOMP | STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "T017"},
};

const AttemptTable escape_namespaces = {rows, sizeof(rows) / sizeof(rows[0])};
