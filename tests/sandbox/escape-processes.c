/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Other processes: one outside (the fixture "victim", of the same account), PID 1, and what is shared with them. */

#include <fcntl.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <grp.h>
#include <unistd.h>

#include "escape.h"

static pid_t victim(void) {
        return (pid_t) fixture_number("victim");
}
static pid_t process(const char *argument) {
        return argument ? (pid_t) number(argument) : victim();
}

static long try_seize(const char *pid) {
        return ptrace(PTRACE_SEIZE, process(pid), NULL, NULL);
}
static long try_traceme(const char *a) {
        (void) a;
        return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static long try_trace_child(const char *a) {
        (void) a;
        pid_t pid = fork();
        if (pid < 0)
                broken("fork");
        if (pid == 0) {
                (void) pause();
                _exit(0);
        }
        long r = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
        int error = errno;
        (void) kill(pid, SIGKILL);
        errno = error;
        return r;
}

static long memory(bool write, pid_t pid) {
        char text[] = "victim";
        struct iovec local = {text, sizeof(text)}, remote = {(void *) fixture_number("address"), sizeof(text)};
        return write ? process_vm_writev(pid, &local, 1, &remote, 1, 0) : process_vm_readv(pid, &local, 1, &remote, 1, 0);
}
static long try_memory_read(const char *a) {
        (void) a;
        return memory(false, victim());
}
static long try_memory_write(const char *a) {
        (void) a;
        return memory(true, victim());
}
static long try_pidfd(const char *a) {
        (void) a;
        return syscall(SYS_pidfd_open, victim(), 0);
}
static long try_pidfd_signal(const char *a) {
        return syscall(SYS_pidfd_send_signal, try_pidfd(a), SIGCONT, NULL, 0);
}
static long try_getfd(const char *a) {
        return syscall(SYS_pidfd_getfd, try_pidfd(a), 0, 0);
}
static long try_getfd_self(const char *a) {
        (void) a;
        return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getpid(), 0), 0, 0);
}
static long try_kcmp(const char *a) {
        (void) a;
        return syscall(SYS_kcmp, victim(), getpid(), 1, 0, 0);
}
static long try_madvise(const char *a) {
        static char page[8192];
        struct iovec v = {(void *) (((uintptr_t) page + 4095) & ~4095UL), 4096};

        (void) a;
        return syscall(SYS_process_madvise, syscall(SYS_pidfd_open, getpid(), 0), &v, 1, 20 /* MADV_COLD */, 0);
}
static long try_move_pages(const char *a) {
        void *page = (void *) (fixture_number("address") & ~4095UL);
        int status;

        (void) a;
        return syscall(SYS_move_pages, victim(), 1, &page, NULL, &status, 0);
}
static long try_migrate_pages(const char *a) {
        unsigned long nodes[16] = {1};

        (void) a;
        return syscall(SYS_migrate_pages, victim(), 64, nodes, nodes);
}

static const char *proc_path(pid_t pid, const char *rest) {
        static char path[128];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, rest);
        return path;
}
static long read_path(const char *path) {
        char c;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -1 : read(fd, &c, 1);
}
static long try_proc_read(const char *rest) {
        return read_path(proc_path(victim(), rest));
}
static long try_proc_memory(const char *flags) {
        char c;
        int fd = open(proc_path(victim(), "mem"), (int) number(flags) | O_CLOEXEC);
        return fd < 0 ? -1 : pread(fd, &c, 1, (off_t) fixture_number("address"));
}
static long try_proc_link(const char *rest) {
        char text[64];
        return readlink(proc_path(victim(), rest), text, sizeof(text));
}
static long try_proc_below(const char *rest) {
        static char path[4096];

        snprintf(path, sizeof(path), "%s%s", proc_path(victim(), rest), place("private/secret"));
        return read_path(path);
}
static long try_proc_write(const char *rest) {
        return open(proc_path(victim(), rest), O_WRONLY | O_CLOEXEC);
}
static long try_first_read(const char *rest) {
        return read_path(proc_path(1, rest));
}
static long try_first_link(const char *rest) {
        char text[64];
        return readlink(proc_path(1, rest), text, sizeof(text));
}
static long try_first_open(const char *rest) {
        return open(proc_path(1, rest), O_RDONLY | O_CLOEXEC);
}
static long try_first_limit(const char *a) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

        (void) a;
        if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
                broken("getrlimit");
        return prlimit(1, RLIMIT_FSIZE, &limit, NULL);
}
static long try_limit(const char *a) {
        struct rlimit limit;

        (void) a;
        if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
                broken("getrlimit");
        return prlimit(victim(), RLIMIT_FSIZE, &limit, NULL);
}
static long try_limit_read(const char *a) {
        struct rlimit limit;

        (void) a;
        return prlimit(victim(), RLIMIT_FSIZE, NULL, &limit);
}

static long try_kill(const char *a) {
        (void) a;
        return kill(victim(), SIGCONT);
}
static long try_kill_group(const char *a) {
        (void) a;
        return kill(-victim(), SIGCONT);
}
static long try_tgkill(const char *a) {
        (void) a;
        return syscall(SYS_tgkill, victim(), victim(), SIGCONT);
}
static long try_tkill(const char *a) {
        (void) a;
        return syscall(SYS_tkill, victim(), SIGCONT);
}
static long try_queue_signal(const char *a) {
        (void) a;
        return sigqueue(victim(), SIGCONT, (union sigval) {.sival_int = 0});
}
/* An owner's signals come from the kernel. */
static long try_owner(const char *a) {
        int pair[2];

        (void) a;
        if (pipe2(pair, O_CLOEXEC) < 0)
                broken("pipe");
        return fcntl(pair[0], F_SETOWN, victim());
}
static long try_priority(const char *pid) {
        return setpriority(PRIO_PROCESS, (id_t) process(pid), getpriority(PRIO_PROCESS, 0));
}
static long try_priority_user(const char *a) {
        (void) a;
        return setpriority(PRIO_USER, 0, getpriority(PRIO_PROCESS, 0));
}
static long try_priority_group(const char *a) {
        (void) a;
        return setpriority(PRIO_PGRP, 0, getpriority(PRIO_PROCESS, 0));
}
static long try_affinity(const char *pid) {
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                broken("sched_getaffinity");
        return sched_setaffinity(process(pid), sizeof(set), &set);
}
static long try_scheduler(const char *pid) {
        struct sched_param p = {};
        return sched_setscheduler(process(pid), SCHED_OTHER, &p);
}
static long try_io_priority(const char *pid) {
        return syscall(SYS_ioprio_set, 1, process(pid), 2 << 13 | 4);
}

static long try_shared_memory(const char *a) {
        (void) a;
        return shmget((key_t) fixture_number("key"), 0, 0);
}
static long try_shared_memory_map(const char *a) {
        (void) a;
        return shmat((int) fixture_number("shm"), NULL, SHM_RDONLY) == (void *) -1 ? -1 : 0;
}
static long try_messages(const char *a) {
        (void) a;
        return msgget((key_t) fixture_number("key"), 0);
}
static long try_semaphore(const char *a) {
        (void) a;
        return semget((key_t) fixture_number("key"), 0, 0);
}
static long try_queue(const char *a) {
        (void) a;
        return mq_open(fixture("queue"), O_RDWR);
}

static long try_set_uid(const char *a) {
        (void) a;
        return setresuid(0, 0, 0);
}
static long try_set_gid(const char *a) {
        (void) a;
        return setresgid(0, 0, 0);
}
static long try_file_uid(const char *a) {
        (void) a;
        /* It tells of no failure but by what was before. */
        (void) syscall(SYS_setfsuid, 0);
        errno = EPERM;
        return syscall(SYS_setfsuid, -1) == 0 ? 0 : -1;
}
static long try_capabilities(const char *a) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {{.effective = 1U << CAP_SYS_ADMIN, .permitted = 1U << CAP_SYS_ADMIN}, {}};

        (void) a;
        return syscall(SYS_capset, &header, data);
}
static long try_ambient(const char *a) {
        (void) a;
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {};
        (void) syscall(SYS_capget, &header, data);
        data[0].inheritable = data[0].permitted;
        (void) syscall(SYS_capset, &header, data);
        return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0);
}
static long try_secure_bits(const char *a) {
        (void) a;
        return prctl(PR_SET_SECUREBITS, 1, 0, 0, 0);
}
static long try_bounding(const char *a) {
        (void) a;
        return prctl(PR_CAPBSET_DROP, CAP_SYS_PACCT, 0, 0, 0);
}

#define OUTSIDE (STOP_SECCOMP | STOP_NAMESPACES | STOP_LANDLOCK)
#define ROW(n, w, f, a, e, s, i) {.name = n, .what = w, .try = f, .argument = a, .error = e, .stops = s, .ids = i}
#define FIRST(n, w, f, a, e, s) {.name = n, .what = w, .try = f, .argument = a, .error = e, .stops = s, .off = OFF_PRIVATE, .ids = "C060 C063"}

static const Attempt rows[] = {
        ROW("ptrace-seize", "rule over a process outside", try_seize, NULL, EPERM, OUTSIDE, "T004 T016"),
        ROW("ptrace-traceme", "tracing at all", try_traceme, NULL, EPERM, STOP_SECCOMP, "T016"),
        ROW("ptrace-child", "tracing of a child, whose calls a tracer changes", try_trace_child, NULL, EPERM, STOP_SECCOMP, "T016"),
        FIRST("ptrace-first", "rule over PID 1", try_seize, "1", EPERM, STOP_SECCOMP | STOP_PRIVILEGE),
        ROW("process-vm-readv", "memory of a process outside", try_memory_read, NULL, EPERM, OUTSIDE, "T004"),
        ROW("process-vm-writev", "changes to the memory of a process outside", try_memory_write, NULL, EPERM, OUTSIDE, "T004"),
        ROW("pidfd-open", "a descriptor of a process outside", try_pidfd, NULL, ESRCH, STOP_NAMESPACES, "T011"),
        ROW("pidfd-send-signal", "a signal by descriptor", try_pidfd_signal, NULL, EBADF, STOP_NAMESPACES | STOP_SCOPE, "T014"),
        ROW("pidfd-getfd", "a descriptor that a process outside has open", try_getfd, NULL, EPERM, OUTSIDE, "T004"),
        ROW("pidfd-getfd-self", "the call at all", try_getfd_self, NULL, EPERM, STOP_SECCOMP, "T004"),
        ROW("kcmp", "whether processes share what", try_kcmp, NULL, EPERM, OUTSIDE, "T004"),
        {.name = "process-madvise", .what = "memory of others pushed out", .try = try_madvise, .error = EPERM, .stops = STOP_SECCOMP,
         .since = 0x060d, .ids = "T004"},
        {.name = "move-pages", .what = "memory of a process outside moved", .try = try_move_pages, .error = EPERM, .stops = OUTSIDE,
         .optional = true, .ids = "T004"},
        {.name = "migrate-pages", .what = "memory of a process outside moved", .try = try_migrate_pages, .error = EPERM, .stops = OUTSIDE,
         .optional = true, .ids = "T004"},
        ROW("proc-memory", "memory of a process outside by /proc", try_proc_memory, "0", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T004"),
        ROW("proc-memory-write", "the same, writable", try_proc_memory, "2", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T004"),
        ROW("proc-environment", "its variables", try_proc_read, "environ", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T020 C060"),
        ROW("proc-maps", "where its memory lies", try_proc_read, "maps", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T004"),
        ROW("proc-auxv", "where its program lies", try_proc_read, "auxv", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T004"),
        ROW("proc-descriptor", "what it has open", try_proc_link, "fd/0", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T011"),
        ROW("proc-program", "which program it runs", try_proc_link, "exe", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T011"),
        ROW("proc-directory", "where it works", try_proc_link, "cwd", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T011"),
        ROW("proc-namespace", "its namespaces", try_proc_link, "ns/mnt", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T011"),
        ROW("proc-root", "a file through its root", try_proc_below, "root", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T009 T010"),
        ROW("proc-command-line", "what it was called with", try_proc_read, "cmdline", ENOENT, STOP_NAMESPACES, "T011 C058"),
        ROW("proc-status", "that it is there", try_proc_read, "status", ENOENT, STOP_NAMESPACES, "T011"),
        ROW("proc-mounts", "what it has mounted", try_proc_read, "mountinfo", ENOENT, STOP_NAMESPACES, "T011"),
        ROW("proc-oom-score", "who dies first", try_proc_write, "oom_score_adj", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T004"),
        ROW("proc-name", "its name", try_proc_write, "comm", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T004"),
        FIRST("first-memory", "memory of PID 1", try_first_open, "mem", EACCES, STOP_PRIVILEGE),
        FIRST("first-environment", "variables of PID 1", try_first_read, "environ", EACCES, STOP_PRIVILEGE),
        FIRST("first-maps", "where its memory lies", try_first_open, "maps", EACCES, STOP_PRIVILEGE),
        FIRST("first-descriptors", "its descriptors", try_first_open, "fd", EACCES, STOP_PRIVILEGE),
        FIRST("first-root", "its root", try_first_link, "root", EACCES, STOP_PRIVILEGE),
        FIRST("first-program", "its program", try_first_link, "exe", EACCES, STOP_PRIVILEGE),
        FIRST("first-namespace", "its namespaces", try_first_link, "ns/user", EACCES, STOP_PRIVILEGE),
        FIRST("first-limit", "limits that end PID 1", try_first_limit, NULL, EPERM, STOP_SECCOMP),
        FIRST("first-priority", "PID 1 too slow to end the others", try_priority, "1", EPERM, STOP_SECCOMP),
        FIRST("first-affinity", "PID 1 on one CPU", try_affinity, "1", EPERM, STOP_SECCOMP),
        FIRST("first-scheduler", "PID 1 idle", try_scheduler, "1", EPERM, STOP_SECCOMP),
        FIRST("first-io-priority", "PID 1 slow", try_io_priority, "1", EPERM, STOP_SECCOMP),
        ROW("kill", "a signal to a process outside", try_kill, NULL, ESRCH, STOP_NAMESPACES | STOP_SCOPE, "T011 T014"),
        ROW("kill-group", "a signal to a group outside", try_kill_group, NULL, ESRCH, STOP_NAMESPACES | STOP_SCOPE, "T014"),
        ROW("tgkill", "a signal to a thread outside", try_tgkill, NULL, ESRCH, STOP_NAMESPACES | STOP_SCOPE, "T014"),
        ROW("tkill", "a signal to a thread outside, old call", try_tkill, NULL, ESRCH, STOP_NAMESPACES | STOP_SCOPE, "T014"),
        ROW("sigqueue", "a signal with a value", try_queue_signal, NULL, ESRCH, STOP_NAMESPACES | STOP_SCOPE, "T014"),
        ROW("fcntl-owner", "to name whom the kernel signals", try_owner, NULL, ESRCH, STOP_NAMESPACES, "T014"),
        ROW("limit-read", "limits of a process outside", try_limit_read, NULL, ESRCH, STOP_NAMESPACES, "T011"),
        ROW("limit", "limits that end a process outside", try_limit, NULL, ESRCH, STOP_NAMESPACES | STOP_SECCOMP, "T004"),
        ROW("priority", "a process outside slower", try_priority, NULL, ESRCH, STOP_NAMESPACES, "T004"),
        ROW("affinity", "a process outside on one CPU", try_affinity, NULL, ESRCH, STOP_NAMESPACES, "T004"),
        ROW("scheduler", "a process outside idle", try_scheduler, NULL, ESRCH, STOP_NAMESPACES, "T004"),
        ROW("io-priority", "a process outside slower", try_io_priority, NULL, ESRCH, STOP_NAMESPACES, "T004"),
        ROW("priority-user", "all processes of the account slower", try_priority_user, NULL, EPERM, STOP_SECCOMP, "T004"),
        ROW("priority-group", "the caller's group slower", try_priority_group, NULL, EPERM, STOP_SECCOMP, "T004"),
        ROW("shared-memory", "a segment of a process outside", try_shared_memory, NULL, ENOENT, STOP_NAMESPACES, "T004"),
        ROW("shared-memory-map", "the same by its number", try_shared_memory_map, NULL, EINVAL, STOP_NAMESPACES, "T004"),
        ROW("message-queue", "messages of processes outside", try_messages, NULL, ENOENT, STOP_NAMESPACES, "T004"),
        ROW("semaphore", "a semaphore of processes outside", try_semaphore, NULL, ENOENT, STOP_NAMESPACES, "T004"),
        ROW("posix-queue", "messages of processes outside, POSIX", try_queue, NULL, ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, "T004"),
/* An id that the namespace does not map is no id. */
#define GAIN(n, w, f, e) {.name = n, .what = w, .try = f, .error = e, .stops = STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "C045"}
        GAIN("set-uid", "root", try_set_uid, EINVAL),
        GAIN("set-fs-uid", "root's files", try_file_uid, EPERM),
        GAIN("capset", "a capability", try_capabilities, EPERM),
        GAIN("ambient", "a capability that survives execve", try_ambient, EPERM),
        GAIN("secure-bits", "root by number alone", try_secure_bits, EPERM),
        GAIN("bounding-set", "changes to the bounding set", try_bounding, EPERM),
        GAIN("set-gid", "root's group", try_set_gid, EINVAL),
};

const AttemptTable escape_processes = {rows, sizeof(rows) / sizeof(rows[0])};
