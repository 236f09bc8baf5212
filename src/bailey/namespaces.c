/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/namespaces.h"
#include "basic/fd.h"
#include "basic/io.h"

static pid_t clone_with(uint64_t flags, bool network, int group, int *ret_pidfd) {
        int pidfd = -EBADF;
        struct clone_args args = {
                .flags = CLONE_PIDFD | CLONE_NEWUSER | flags | (network ? (uint64_t) CLONE_NEWNET : 0) | (group >= 0 ? CLONE_INTO_CGROUP : 0),
                .pidfd = (uint64_t) (uintptr_t) &pidfd,
                .exit_signal = SIGCHLD,
                .cgroup = group >= 0 ? (uint64_t) group : 0,
        };

        long pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid < 0)
                return (pid_t) negative_errno();
        if (pid > 0)
                *ret_pidfd = pidfd;
        return (pid_t) pid;
}

pid_t namespaces_clone(bool network, int group, int *ret_pidfd) {
        return clone_with(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP, network, group, ret_pidfd);
}

pid_t namespaces_clone_user(bool network, int group, int *ret_pidfd) {
        return clone_with(0, network, group, ret_pidfd);
}

bool namespaces_unavailable(int error) {
        /* ENOSPC: user.max_*_namespaces; EUSERS: the same on kernels before 4.9, or nested too deep; EINVAL: one is not built in. */
        return error == -EPERM || error == -ENOSYS || error == -ENOSPC || error == -EUSERS || error == -EINVAL;
}

static int map_ids(uid_t uid, gid_t gid, Failure *f) {
        char line[64];
        int r;

        r = write_file_once("/proc/self/setgroups", "deny");
        if (r < 0)
                return failure_set(f, STAGE_IDS, r, "/proc/self/setgroups");
        (void) snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
        r = write_file_once("/proc/self/uid_map", line);
        if (r < 0)
                return failure_set(f, STAGE_IDS, r, "/proc/self/uid_map");
        (void) snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
        r = write_file_once("/proc/self/gid_map", line);
        if (r < 0)
                return failure_set(f, STAGE_IDS, r, "/proc/self/gid_map");
        return 0;
}

/* Of the eight limits that one. A namespace of any other kind is for whoever has CAP_SYS_ADMIN in the user namespace, which nobody has when the
 * capabilities are gone from every set (capabilities_drop()), and which could come with a further user namespace alone. Each file of
 * /proc/sys that is opened in a new user namespace is made by the kernel for it: eight of them cost a start more than Landlock does. */
int namespaces_forbid_more(int limits, Failure *f) {
        static const char name[] = "max_user_namespaces";

        _cleanup_close_ int fd = openat(limits, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || write(fd, "0", 1) < 0)
                return failure_set(f, STAGE_NESTING, errno, "user.%s", name);
        return 0;
}

static int set_up(uid_t uid, gid_t gid, const char *host_name, int *ret_limits, Failure *f) {
        int r;

        /* A caller that changed its ids is not dumpable, and then its /proc/self files are root's. */
        if (prctl(PR_SET_DUMPABLE, 1) < 0)
                return failure_set(f, STAGE_IDS, errno, "PR_SET_DUMPABLE");
        r = map_ids(uid, gid, f);
        if (r < 0)
                return r;
        if (host_name && sethostname(host_name, strlen(host_name)) < 0)
                return failure_set(f, STAGE_HOSTNAME, errno, "%s", host_name);

        int fd = open("/proc/sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return failure_set(f, STAGE_NESTING, errno, "/proc/sys/user");
        *ret_limits = fd;
        return 0;
}

int namespaces_set_up(uid_t uid, gid_t gid, int *ret_limits, Failure *f) {
        return set_up(uid, gid, "bailey", ret_limits, f);
}

int namespaces_set_up_user(uid_t uid, gid_t gid, int *ret_limits, Failure *f) {
        return set_up(uid, gid, NULL, ret_limits, f);
}

int capabilities_bound(Failure *f) {
        /* EINVAL is the first number that this kernel does not know. Without CAP_SETPCAP (no namespaces) the bounding set
         * stays, and no_new_privs makes it meaningless. */
        for (unsigned long c = 0; c < 64; c++)
                if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0) {
                        if (errno == EINVAL || errno == EPERM)
                                break;
                        return failure_set(f, STAGE_CAPABILITIES, errno, "bounding set");
                }
        return 0;
}

int capabilities_drop(Failure *f) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {};

        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return failure_set(f, STAGE_CAPABILITIES, errno, "ambient set");
        if (syscall(SYS_capset, &header, data) < 0)
                return failure_set(f, STAGE_CAPABILITIES, errno, "capset");
        return 0;
}
