/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The least that a sandbox of namespaces can do: one clone3 into all of them, ids mapped, execute, wait. What bench-start.py measures against. */

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int put(const char *path, const char *text, size_t size) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd >= 0 && write(fd, text, size) == (ssize_t) size && close(fd) == 0 ? 0 : -1;
}

static int map(const char *path, unsigned id) {
        char line[64];
        int n = snprintf(line, sizeof(line), "%u %u 1", id, id);
        return put(path, line, (size_t) n);
}

int main(int argc, char *argv[]) {
        struct clone_args args = {
                .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
                .exit_signal = SIGCHLD,
        };
        unsigned uid = getuid(), gid = getgid();
        int status;

        if (argc < 2)
                return 125;
        long pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid < 0)
                return 125;
        if (pid == 0) {
                if (put("/proc/self/setgroups", "deny", 4) < 0 || map("/proc/self/uid_map", uid) < 0 || map("/proc/self/gid_map", gid) < 0)
                        _exit(125);
                (void) execv(argv[1], argv + 1);
                _exit(127);
        }
        return waitpid((pid_t) pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
