/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/spawn.h"

#define ACTIVATION_VARIABLES 3U

static void reset_signals(void) {
        sigset_t none;

        for (int i = 1; i < SIGRTMIN; i++)
                (void) signal(i, SIG_DFL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* High up first, so that no descriptor is written over before it was moved. */
static int place_fds(const SpawnRequest *q, int program, int error, int *ret_program, int *ret_error) {
        const int base = 3 + (int) SPAWN_FDS_MAX;
        int moved[SPAWN_FDS_MAX];

        int p = fcntl(program, F_DUPFD_CLOEXEC, base), e = fcntl(error, F_DUPFD_CLOEXEC, base);
        int log = q->log >= 0 ? fcntl(q->log, F_DUPFD_CLOEXEC, base) : STDERR_FILENO;
        if (p < 0 || e < 0 || log < 0)
                return -errno;
        for (size_t i = 0; i < q->n_fds; i++) {
                moved[i] = fcntl(q->fds[i], F_DUPFD_CLOEXEC, base);
                if (moved[i] < 0)
                        return -errno;
        }
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
                return -errno;
        for (size_t i = 0; i < q->n_fds; i++)
                if (dup2(moved[i], 3 + (int) i) < 0)
                        return -errno;
        const int keep[] = {p, e};
        *ret_program = p;
        *ret_error = e;
        return fd_close_all_except(3 + (int) q->n_fds, keep, ELEMENTSOF(keep));
}

_noreturn_ static void child(const SpawnRequest *q, char **environment, size_t n, int error, pid_t parent) {
        static char pid[32], count[32];
        int program = -EBADF, e = error;

        reset_signals();
        int r = place_fds(q, q->program, error, &program, &e);
        if (r >= 0 && q->identity)
                r = identity_become(q->identity);
        /* After the change of uid, which clears it. */
        if (r >= 0 && q->bound && prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
                r = -errno;
        if (r >= 0 && getppid() != parent)
                r = -ECHILD;
        if (r >= 0) {
                if (q->activation) {
                        (void) snprintf(pid, sizeof(pid), "LISTEN_PID=%d", (int) getpid());
                        (void) snprintf(count, sizeof(count), "LISTEN_FDS=%zu", q->n_fds);
                        environment[n] = pid;
                        environment[n + 1] = count;
                }
                (void) fexecve(program, q->argv, environment);
                r = -errno;
        }
        (void) !write(e, &r, sizeof(r));
        _exit(127);
}

int spawn(const SpawnRequest *q, pid_t *ret) {
        _cleanup_free_ char **environment = NULL, *names = NULL;
        size_t n = strv_length(q->environment);
        int pair[2], error = 0;

        if (q->n_fds > SPAWN_FDS_MAX)
                return -E2BIG;
        environment = calloc(n + ACTIVATION_VARIABLES + 1, sizeof(char *));
        if (!environment || (q->activation && asprintf(&names, "LISTEN_FDNAMES=%s", q->activation) < 0))
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                environment[i] = q->environment[i];
        if (names)
                environment[n + 2] = names;
        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        _cleanup_close_ int reading = pair[0], writing = pair[1];

        pid_t parent = getpid(), pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                child(q, environment, n, writing, parent);
        writing = safe_close(writing);
        ssize_t size = read_all(reading, &error, sizeof(error));
        if (size == 0) {
                *ret = pid;
                return 0;
        }
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return size == sizeof(error) && error < 0 ? error : -EIO;
}
