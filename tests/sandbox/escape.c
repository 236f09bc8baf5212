/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* escape list                       the table: NAME ERROR OFF OFF_ERROR SINCE OPTIONAL STOPS IDS WHAT, parted by tabs
 * escape run|off|root NAME=VALUE…   makes the attempts: as they are; as they are made without a sandbox, those of OFF_PLAIN and
 *                                   OFF_PRIVATE; those of OFF_ROOT. A line for each: NAME RESULT, of "ok", an errno, "absent"
 *                                   (no fixture), "broken", "late", "signal N"; and at its end "done", without which it was cut short
 * escape one ATTEMPT NAME=VALUE…    one of them, in this very process: exits with the errno
 * escape victim                     a process outside to attack; says where it can be attacked, and ends with its standard input
 * escape nothing                    exits with 0
 * escape privileged                 exits with 0 when it was started with a privilege that its caller has not */

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"

#define STATUS_BROKEN 255
#define STATUS_ABSENT 254
#define ATTEMPT_SECONDS 10U

static const AttemptTable *const tables[] = {
        &escape_mounts,  &escape_namespaces, &escape_processes, &escape_kernel,      &escape_compat,
        &escape_sockets, &escape_files,      &escape_places,    &escape_descriptors, &escape_terminal,
};

static char **fixtures;

const char *fixture(const char *name) {
        size_t n = strlen(name);

        for (char **f = fixtures; *f; f++)
                if (strncmp(*f, name, n) == 0 && (*f)[n] == '=')
                        return *f + n + 1;
        _exit(STATUS_ABSENT);
}

unsigned long number(const char *argument) {
        return strtoul(argument, NULL, 0);
}

unsigned long fixture_number(const char *name) {
        return number(fixture(name));
}

const char *place(const char *path) {
        static char buffers[4][4096];
        static unsigned next;
        char *b = buffers[next++ % 4];

        snprintf(b, sizeof(buffers[0]), "%s/%s", fixture("root"), path);
        return b;
}

void broken(const char *what) {
        fprintf(stderr, "escape: %s: %s\n", what, strerror(errno));
        _exit(STATUS_BROKEN);
}

long child_result(long pid) {
        int status;

        if (pid < 0)
                return -1;
        if (waitpid((pid_t) pid, &status, __WALL) < 0)
                broken("waitpid");
        if (WIFEXITED(status) && WEXITSTATUS(status) >= STATUS_ABSENT)
                _exit(WEXITSTATUS(status));
        errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
        return errno ? -1 : 0;
}

__attribute__((noreturn)) static void attempt_make(const Attempt *a) {
        (void) alarm(ATTEMPT_SECONDS);
        errno = 0;
        _exit(a->try(a->argument) >= 0 ? 0 : errno ? errno : STATUS_BROKEN);
}

static void write_file(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                broken(path);
        close(fd);
}

/* First process of the private namespaces: root there, with a tmpfs at work/mount and its own /proc. */
__attribute__((noreturn)) static void private_first(const Attempt *a) {
        int status;

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0 ||
            mount("none", place("work/mount"), "tmpfs", 0, NULL) < 0)
                broken("mount");
        pid_t pid = fork();
        if (pid < 0)
                broken("fork");
        if (pid == 0)
                attempt_make(a);
        if (waitpid(pid, &status, 0) < 0)
                broken("waitpid");
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_BROKEN);
}

__attribute__((noreturn)) static void private_make(const Attempt *a) {
        char map[64], groups[64];
        int status;

        /* Unmapped, they would be nobody's afterwards. */
        snprintf(map, sizeof(map), "0 %u 1", (unsigned) getuid());
        snprintf(groups, sizeof(groups), "0 %u 1", (unsigned) getgid());
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
                broken("unshare");
        write_file("/proc/self/uid_map", map);
        write_file("/proc/self/setgroups", "deny");
        write_file("/proc/self/gid_map", groups);
        pid_t pid = fork();
        if (pid < 0)
                broken("fork");
        if (pid == 0)
                private_first(a);
        if (waitpid(pid, &status, 0) < 0)
                broken("waitpid");
        /* reboot() of a PID namespace that is not the first one hangs its first process up. */
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGHUP ? 0 : STATUS_BROKEN);
}

static void attempt_run(const Attempt *a, bool private) {
        int status;

        printf("%s ", a->name);
        fflush(stdout);
        pid_t pid = fork();
        if (pid < 0)
                broken("fork");
        if (pid == 0) {
                if (private)
                        private_make(a);
                attempt_make(a);
        }
        if (waitpid(pid, &status, 0) < 0)
                broken("waitpid");
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
                printf("late\n");
        else if (WIFSIGNALED(status))
                printf("signal %d\n", WTERMSIG(status));
        else if (WEXITSTATUS(status) == 0)
                printf("ok\n");
        else if (WEXITSTATUS(status) >= STATUS_ABSENT)
                printf("%s\n", WEXITSTATUS(status) == STATUS_ABSENT ? "absent" : "broken");
        else
                printf("%s\n", strerrorname_np(WEXITSTATUS(status)));
}

static int run(const char *mode) {
        bool inside = strcmp(mode, "run") == 0, root = strcmp(mode, "root") == 0;

        for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
                for (size_t i = 0; i < tables[t]->n; i++) {
                        const Attempt *a = &tables[t]->rows[i];
                        if (inside || (root ? a->off == OFF_ROOT : a->off == OFF_PLAIN || a->off == OFF_PRIVATE))
                                attempt_run(a, !inside && a->off == OFF_PRIVATE);
                }
        printf("done\n");
        return 0;
}

static int list(void) {
        static const char *const stops[] = {
                "namespaces", "landlock", "truncate", "scope", "ioctl", "seccomp", "cover", "island", "tmp", "privilege", "start", "network",
        };
        static const char *const offs[] = {"plain", "private", "root", "never"};

        for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
                for (size_t i = 0; i < tables[t]->n; i++) {
                        const Attempt *a = &tables[t]->rows[i];
                        const char *separator = "";

                        printf("%s\t%s\t%s\t%s\t%u\t%d\t", a->name, strerrorname_np(a->error), offs[a->off],
                               a->off_error ? strerrorname_np(a->off_error) : "ok", a->since, a->optional);
                        for (size_t s = 0; s < sizeof(stops) / sizeof(stops[0]); s++)
                                if (a->stops & (1U << s)) {
                                        printf("%s%s", separator, stops[s]);
                                        separator = ",";
                                }
                        printf("\t%s\t%s\n", a->ids, a->what);
                }
        return 0;
}

static int one(const char *name) {
        for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
                for (size_t i = 0; i < tables[t]->n; i++)
                        if (strcmp(tables[t]->rows[i].name, name) == 0)
                                attempt_make(&tables[t]->rows[i]);
        return STATUS_BROKEN;
}

static int victim(void) {
        static char target[] = "victim";
        struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
        char queue[64], c;

        /* Where only descendants may be traced (yama), this one lets itself be by everybody. */
        (void) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        key_t key = (key_t) (0x6261696c ^ getpid());
        int shm = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600), msg = msgget(key, IPC_CREAT | IPC_EXCL | 0600),
            sem = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600);
        snprintf(queue, sizeof(queue), "/escape-%d", (int) getpid());
        mqd_t mq = mq_open(queue, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
        if (shm < 0 || msg < 0 || sem < 0 || mq == (mqd_t) -1)
                broken("shared memory and queues");
        printf("victim=%d address=%lu key=%u shm=%d queue=%s\n", (int) getpid(), (unsigned long) (uintptr_t) target, (unsigned) key, shm,
               queue);
        fflush(stdout);
        while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR)
                ;
        (void) shmctl(shm, IPC_RMID, NULL);
        (void) msgctl(msg, IPC_RMID, NULL);
        (void) semctl(sem, 0, IPC_RMID);
        (void) mq_unlink(queue);
        return strcmp(target, "victim") == 0 ? 0 : 1;
}

static int privileged(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {};

        (void) syscall(SYS_capget, &header, data);
        return geteuid() != getuid() || getegid() != getgid() || data[0].permitted ? 0 : EPERM;
}

int main(int argc, char *argv[]) {
        const char *mode = argc > 1 ? argv[1] : "";
        bool root = strcmp(mode, "root") == 0;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (strcmp(mode, "privileged") == 0)
                return privileged();
        if (strcmp(mode, "nothing") == 0)
                return 0;
        if (strcmp(mode, "list") == 0)
                return list();
        if ((getuid() == 0) != root) {
                fprintf(stderr, "escape: not as root, but for what only root can do\n");
                return STATUS_BROKEN;
        }
        fixtures = argv + 2;
        if (strcmp(mode, "victim") == 0)
                return victim();
        if (strcmp(mode, "one") == 0 && argc > 2) {
                fixtures = argv + 3;
                return one(argv[2]);
        }
        if (strcmp(mode, "run") == 0 || strcmp(mode, "off") == 0 || root)
                return run(mode);
        fprintf(stderr, "escape: run, off, root, one, list, victim, nothing or privileged?\n");
        return STATUS_BROKEN;
}
