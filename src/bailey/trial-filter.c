/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/landlock.h"
#include "bailey/seccomp.h"
#include "bailey/trial.h"
#include "basic/fd.h"

/* ---- Landlock ---- */

/* A file that has no name, in a place where one can be had. */
static int unnamed_file(void) {
        static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "."};

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                int fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
                if (fd >= 0)
                        return fd;
        }
        return -EOPNOTSUPP;
}

/* Each returns the positive errno of what has to be refused, 0 when it was not. */
static int do_read(void) {
        _cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? errno : 0;
}

static int do_truncate(int file) {
        char path[32];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        return truncate(path, 0) < 0 ? errno : 0;
}

static int do_connect(void) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return 0;
        return connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ? errno : 0;
}

static int do_ioctl(void) {
        int unlock = 0;

        _cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        return fd < 0 || ioctl(fd, TIOCSPTLCK, &unlock) == 0 ? 0 : errno;
}

/* Of the signal and of the connection both. */
static int do_reach_out(const struct sockaddr_un *address, socklen_t size) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (kill(getppid(), 0) == 0 || errno != EPERM)
                return 0;
        return fd < 0 || connect(fd, (struct sockaddr *) address, size) == 0 ? 0 : errno;
}

static int attempt_right(LandlockRight right, int file, const struct sockaddr_un *address, socklen_t size) {
        switch (right) {
        case LANDLOCK_RIGHT_READ:
                return do_read();
        case LANDLOCK_RIGHT_TRUNCATE:
                /* Where no such file can be made, that the kernel took the right has to do. */
                return file >= 0 ? do_truncate(file) : EACCES;
        case LANDLOCK_RIGHT_CONNECT:
                return do_connect();
        case LANDLOCK_RIGHT_IOCTL:
                return do_ioctl();
        case LANDLOCK_RIGHT_SCOPE:
                return do_reach_out(address, size);
        case LANDLOCK_RIGHT_REFER:
        case _LANDLOCK_RIGHT_MAX:
        case _LANDLOCK_RIGHT_INVALID:
                break;
        }
        /* It only ever allows: without it the kernel refuses to move files whatever the rules are. */
        return EACCES;
}

void trial_landlock(const Mechanism *m, Outcome *ret) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        socklen_t size = sizeof(sa_family_t);

        _cleanup_close_ int file = m->argument == LANDLOCK_RIGHT_TRUNCATE ? unnamed_file() : -EBADF;
        _cleanup_close_ int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        /* An address of one byte less than nothing has the kernel choose an abstract one. */
        if (listener < 0 || bind(listener, (struct sockaddr *) &address, size) < 0 || listen(listener, 1) < 0 ||
            (size = sizeof(address), getsockname(listener, (struct sockaddr *) &address, &size)) < 0 ||
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
                outcome_fails(ret, errno, "preparing");
                return;
        }
        int r = landlock_restrict_right((LandlockRight) m->argument);
        if (r < 0 && m->argument == LANDLOCK_RIGHT_READ && landlock_abi() > 0) {
                /* As it stops a run. */
                Failure f;
                (void) failure_set(&f, STAGE_LANDLOCK, r, "%s", "");
                outcome_fails_at(ret, &f);
                return;
        }
        if (r < 0) {
                outcome_fails(ret, 0, "the kernel does not know it (%s)", strerror(-r));
                return;
        }
        int error = attempt_right((LandlockRight) m->argument, file, &address, size);
        int meant = m->argument == LANDLOCK_RIGHT_SCOPE ? EPERM : EACCES;
        if (error != meant)
                outcome_fails(ret, error, "what it shall refuse is not refused by it");
        else if (m->argument == LANDLOCK_RIGHT_READ)
                outcome_works(ret, "ABI %d", landlock_abi());
        else
                outcome_works(ret, "%s", "");
}

/* ---- seccomp ---- */

void trial_seccomp(_unused_ const Mechanism *m, Outcome *ret) {
        Failure f = {};

        if (!seccomp_available()) {
                outcome_fails(ret, 0, "the kernel takes no filters");
                return;
        }
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                outcome_fails(ret, errno, "no_new_privs");
        else if (seccomp_load(true, true, &f) < 0)
                outcome_fails_at(ret, &f);
        else if (unshare(0) == 0 || errno != EPERM)
                outcome_fails(ret, 0, "what the filter shall refuse is not refused");
        else
                outcome_works(ret, "%s", "");
}

/* One call that nothing else makes here. */
#define ASKED_CALL SYS_getpriority
#define ANSWER 4711

static int listen_to_calls(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ASKED_CALL, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = ELEMENTSOF(code), .filter = code};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        int fd = (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        return fd < 0 ? -errno : fd;
}

/* The sizes are the kernel's to say, and may be larger than those of the headers. */
static int answer_call(int listener) {
        struct seccomp_notif_sizes sizes = {};

        if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
                return -errno;
        _cleanup_free_ struct seccomp_notif *asked = calloc(1, MAX(sizes.seccomp_notif, sizeof(struct seccomp_notif)));
        _cleanup_free_ struct seccomp_notif_resp *answer = calloc(1, MAX(sizes.seccomp_notif_resp, sizeof(struct seccomp_notif_resp)));
        if (!asked || !answer)
                return -ENOMEM;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, asked) < 0)
                return -errno;
        answer->id = asked->id;
        answer->val = ANSWER;
        return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, answer) < 0 ? -errno : 0;
}

void trial_seccomp_notification(_unused_ const Mechanism *m, Outcome *ret) {
        int status = 0;

        _cleanup_close_ int listener = listen_to_calls();
        if (listener < 0) {
                outcome_fails(ret, listener, "nobody can listen to system calls here");
                return;
        }
        pid_t pid = fork();
        if (pid == 0)
                _exit(prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || syscall(ASKED_CALL, 0, 0) != ANSWER);
        int r = pid < 0 ? -errno : answer_call(listener);
        if (r >= 0 && waitpid(pid, &status, 0) < 0)
                r = -errno;
        if (r < 0)
                outcome_fails(ret, r, "a system call cannot be answered");
        else if (status != 0)
                outcome_fails(ret, 0, "the answer to a system call did not arrive");
        else
                outcome_works(ret, "%s", "");
}
