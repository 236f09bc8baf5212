/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* test-activate: runs a program as a service manager's socket activation would.
 *
 *   test-activate [--user UID] NAME=FD… -- PROGRAM-FD ARG0 [ARGS…]
 *
 * The named fds become 3, 4, … in the given order, LISTEN_FDS, LISTEN_FDNAMES and LISTEN_PID (this process, that is, the program) are set,
 * every capability and, with --user, the account is given up, and the program, an open file, is executed: it may lie where
 * that account cannot reach it. Without any NAME=FD nothing of LISTEN_* is set: then it only drops what must not be inherited. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FDS_MAX 32

static int fail(const char *what) {
        fprintf(stderr, "test-activate: %s: %s\n", what, strerror(errno));
        return 125;
}

static int place_fds(const int *fds, int n, int *program) {
        int moved[FDS_MAX];

        /* First all of them out of the way, then each to its place: no second copy of a listening socket stays behind, which would
         * keep it listening after the program has closed it. */
        int original = *program;
        *program = fcntl(original, F_DUPFD_CLOEXEC, 64);
        if (*program < 0)
                return -1;
        close(original);
        for (int i = 0; i < n; i++)
                if ((moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64)) < 0)
                        return -1;
        for (int i = 0; i < n; i++)
                close(fds[i]);
        for (int i = 0; i < n; i++)
                if (dup2(moved[i], 3 + i) < 0)
                        return -1;
        return 0;
}

static int set_environment(const char *names, int n) {
        char text[32];

        if (n == 0)
                return 0;
        snprintf(text, sizeof(text), "%d", n);
        if (setenv("LISTEN_FDS", text, 1) < 0)
                return -1;
        snprintf(text, sizeof(text), "%d", getpid());
        if (setenv("LISTEN_PID", text, 1) < 0)
                return -1;
        return setenv("LISTEN_FDNAMES", names, 1);
}

int main(int argc, char *argv[]) {
        int fds[FDS_MAX], n = 0, i = 1;
        char names[1024] = "";
        uid_t user = (uid_t) -1;

        if (i + 1 < argc && strcmp(argv[i], "--user") == 0) {
                user = (uid_t) strtoul(argv[i + 1], NULL, 10);
                i += 2;
        }
        for (; i < argc && strcmp(argv[i], "--") != 0 && n < FDS_MAX; i++) {
                char *equals = strchr(argv[i], '=');
                if (!equals || strlen(names) + strlen(argv[i]) + 2 > sizeof(names))
                        return fprintf(stderr, "test-activate: %s is not NAME=FD\n", argv[i]), 125;
                *equals = 0;
                if (n > 0)
                        strcat(names, ":");
                strcat(names, argv[i]);
                fds[n++] = atoi(equals + 1);
        }
        if (argc - i < 3 || strcmp(argv[i], "--") != 0)
                return fprintf(stderr, "usage: test-activate [--user UID] NAME=FD… -- PROGRAM-FD ARG0 [ARGS…]\n"), 125;
        int program = atoi(argv[i + 1]);

        if (place_fds(fds, n, &program) < 0)
                return fail("moving the file descriptors");
        if (set_environment(names, n) < 0)
                return fail("setting the environment");
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return fail("dropping the ambient capabilities");
        if (user != (uid_t) -1 && (setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0))
                return fail("changing the account");
        signal(SIGPIPE, SIG_DFL);
        execveat(program, "", argv + i + 2, environ, AT_EMPTY_PATH);
        return fail(argv[i + 2]);
}
