/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bailey/ahead-message.h"
#include "bailey/ahead.h"
#include "bailey/group.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/secret.h"
#include "basic/text.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

/* What this process was handed, with its pointers at the strings even if environ is changed. */
static char **handed[2];

bool ahead_waits(int argc, char *argv[], int *ret_gate) {
        return argc == 3 && streq(argv[1], "--wait-fd") && parse_fd(argv[2], ret_gate) >= 0 && *ret_gate > STDERR_FILENO &&
               fd_cloexec(*ret_gate, true) >= 0;
}

static int receive_run(int gate, AheadRun *run) {
        _cleanup_free_ char *text = malloc(AHEAD_MESSAGE_MAX);

        if (!text)
                return -ENOMEM;
        ssize_t n = recv_fds(gate, text, AHEAD_MESSAGE_MAX, run->fds, AHEAD_FDS_MAX, &run->n_fds);
        if (n <= 0)
                return n < 0 ? (int) n : -ECONNRESET;
        int r = ahead_run_parse(text, (size_t) n, run);
        secret_wipe(text, (size_t) n);
        return r;
}

/* First all go out of the way, then each to its number. */
static int place_fds(AheadRun *run) {
        int numbers[AHEAD_FDS_MAX], keep[AHEAD_FDS_MAX], least;
        size_t n_keep = 0;

        int r = ahead_run_numbers(run, numbers, &least);
        if (r < 0)
                return r;
        for (size_t i = 0; i < run->n_fds; i++) {
                int moved = fcntl(run->fds[i], F_DUPFD_CLOEXEC, least);
                if (moved < 0)
                        return -errno;
                safe_close(run->fds[i]);
                run->fds[i] = moved;
        }
        for (size_t i = 0; i < run->n_fds; i++) {
                if (numbers[i] == AHEAD_PROJECT ? fchdir(run->fds[i]) < 0 : dup2(run->fds[i], numbers[i]) < 0)
                        return -errno;
                if (numbers[i] > STDERR_FILENO)
                        keep[n_keep++] = numbers[i];
        }
        run->n_fds = 0; /* as the rest is closed */
        return fd_close_all_except(STDERR_FILENO + 1, keep, n_keep);
}

static int set_limits(const AheadRun *run) {
        struct rlimit core;
        const struct rlimit file = {(rlim_t) run->file_max, (rlim_t) run->file_max};

        /* Whoever executes it has taken the soft one from itself. */
        if (getrlimit(RLIMIT_CORE, &core) >= 0) {
                core.rlim_cur = MIN((rlim_t) run->core, core.rlim_max);
                (void) setrlimit(RLIMIT_CORE, &core);
        }
        /* The report says that it is held. */
        return run->file_max != UINT64_MAX && setrlimit(RLIMIT_FSIZE, &file) < 0 ? -errno : 0;
}

static int pass_gate(int gate, AheadRun *run) {
        char group[PATH_MAX];
        ssize_t n;

        while ((n = recv(gate, group, sizeof(group), 0)) < 0 && errno == EINTR)
                ;
        if (n <= 0)
                return n < 0 ? -errno : -ECONNRESET;
        if (group[n - 1] != 0)
                return -EBADMSG;
        return *group ? strv_extend_format(&run->environment, GROUP_ROOT_VARIABLE "=%s", group) : 0;
}

/* Who waits for nothing has the time to have the program's pages at hand. */
static void populate(void) {
        extern const char __executable_start[], etext[];
        uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE), begin = (uintptr_t) __executable_start & ~(page - 1);

        (void) madvise((void *) begin, (uintptr_t) etext - begin, MADV_POPULATE_READ); /* NOLINT: addresses by definition */
}

static int wait_for_run(int gate, AheadRun *run) {
        const char waits = 0;

        if (send(gate, &waits, sizeof(waits), MSG_NOSIGNAL) < 0)
                return errno == EPIPE ? -ECONNRESET : -errno;
        int r = receive_run(gate, run);
        if (r >= 0)
                r = pass_gate(gate, run);
        if (r >= 0)
                r = set_limits(run);
        return r < 0 ? r : place_fds(run);
}

int ahead_wait(int gate, int *ret_argc, char ***ret_argv) {
        static char *empty[] = {NULL};
        _cleanup_(ahead_run_done) AheadRun run = AHEAD_RUN_NONE;

        /* It waits long, and what it is handed are a session's descriptors: until it is told to go, as if it were still the shim's own process, into which no
         * other of the account looks or writes. */
        bool dumpable = prctl(PR_GET_DUMPABLE) == 1;
        if (prctl(PR_SET_DUMPABLE, 0) < 0)
                return log_error_errno(-errno, "This process cannot be hidden from others of its account: %m");
        (void) prctl(PR_SET_NAME, "bailey-ahead");
        populate();
        int r = wait_for_run(gate, &run);
        if (r < 0)
                return r == -ECONNRESET ? r : log_error_errno(r, "What is to be run is not understood: %m");
        (void) prctl(PR_SET_DUMPABLE, dumpable);
        (void) prctl(PR_SET_NAME, "bailey");
        handed[0] = *ret_argv = TAKE_PTR(run.arguments);
        handed[1] = environ = TAKE_PTR(run.environment) ?: empty;
        *ret_argc = (int) strv_length(*ret_argv);
        return 0;
}

void ahead_wipe(void) {
        for (size_t i = 0; i < ELEMENTSOF(handed); i++)
                for (char **s = handed[i]; s && *s; s++)
                        secret_wipe(*s, strlen(*s));
}
