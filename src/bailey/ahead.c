/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bailey/ahead.h"
#include "bailey/group.h"
#include "basic/fd.h"
#include "basic/json-reader.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"

#define MESSAGE_SIZE_MAX (64U * 1024U) /* as of every message between our programs */
#define RUN_FDS_MAX 16U

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

#define PROJECT (-1) /* the working directory, which has no number */

typedef struct Run {
        char **arguments, **environment, **names;
        int fds[RUN_FDS_MAX];
        size_t n_fds;
        uint64_t core, file_max; /* UINT64_MAX: none, and for file_max as it is */
} Run;

static void run_done(Run *run) {
        strv_free(run->arguments);
        strv_free(run->environment);
        strv_free(run->names);
        for (size_t i = 0; i < run->n_fds; i++)
                safe_close(run->fds[i]);
}

bool ahead_waits(int argc, char *argv[], int *ret_gate) {
        return argc == 3 && streq(argv[1], "--wait-fd") && parse_fd(argv[2], ret_gate) >= 0 && *ret_gate > STDERR_FILENO &&
               fd_cloexec(*ret_gate, true) >= 0;
}

/* ---- the message ---- */

static int take_list(JsonReader *r, char ***ret) {
        int k = *ret ? -EBADMSG : json_enter_array(r);

        while (k >= 0 && (k = json_next_element(r)) > 0) {
                char *s;
                k = json_take_string(r, &s);
                if (k >= 0)
                        k = strv_consume(ret, s);
        }
        return k;
}

static int take_version(JsonReader *r) {
        uint64_t version;
        int k = json_take_u64(r, &version);

        return k < 0 ? k : version == 1 ? 0 : -EBADMSG;
}

static int take_type(JsonReader *r) {
        _cleanup_free_ char *type = NULL;
        int k = json_take_string(r, &type);

        return k < 0 ? k : streq(type, "run") ? 0 : -EBADMSG;
}

static int read_run(const char *text, size_t size, Run *run) {
        JsonReader reader;

        int r = json_reader_init(&reader, text, size);
        if (r >= 0)
                r = json_enter_object(&reader);
        while (r >= 0) {
                _cleanup_free_ char *name = NULL;
                r = json_next_member(&reader, &name);
                if (r <= 0)
                        break;
                r = streq(name, "v")           ? take_version(&reader) :
                    streq(name, "type")        ? take_type(&reader) :
                    streq(name, "arguments")   ? take_list(&reader, &run->arguments) :
                    streq(name, "environment") ? take_list(&reader, &run->environment) :
                    streq(name, "fds")         ? take_list(&reader, &run->names) :
                    streq(name, "core")        ? json_take_u64(&reader, &run->core) :
                    streq(name, "fileMax")     ? json_take_u64(&reader, &run->file_max) : -EBADMSG;
        }
        if (r >= 0)
                r = json_reader_finish(&reader);
        return r < 0 ? r : run->arguments && strv_length(run->names) == run->n_fds ? 0 : -EBADMSG;
}

static int receive_run(int gate, Run *run) {
        _cleanup_free_ char *text = malloc(MESSAGE_SIZE_MAX);

        if (!text)
                return -ENOMEM;
        ssize_t n = recv_fds(gate, text, MESSAGE_SIZE_MAX, run->fds, RUN_FDS_MAX, &run->n_fds);
        if (n <= 0)
                return n < 0 ? (int) n : -ECONNRESET;
        return read_run(text, (size_t) n, run);
}

/* ---- what it says ---- */

static int number_of(const char *name, int *ret) {
        static const char *const standard[] = {"stdin", "stdout", "stderr"};

        for (int i = 0; i <= STDERR_FILENO; i++)
                if (streq(name, standard[i])) {
                        *ret = i;
                        return 0;
                }
        if (streq(name, "project")) {
                *ret = PROJECT;
                return 0;
        }
        return parse_fd(name, ret) < 0 || *ret <= STDERR_FILENO || *ret == INT_MAX ? -EBADMSG : 0;
}

/* As the names say, each once; *ret_least is above all of them. */
static int number_fds(const Run *run, int numbers[RUN_FDS_MAX], int *ret_least) {
        unsigned found = 0;

        *ret_least = STDERR_FILENO + 1;
        for (size_t i = 0; i < run->n_fds; i++) {
                int r = number_of(run->names[i], &numbers[i]);
                if (r < 0)
                        return r;
                for (size_t k = 0; k < i; k++)
                        if (numbers[k] == numbers[i])
                                return -EBADMSG;
                *ret_least = MAX(*ret_least, numbers[i] + 1);
                found += numbers[i] <= STDERR_FILENO;
        }
        return found == STDERR_FILENO + 2 ? 0 : -EBADMSG; /* these and the project */
}

/* First all go out of the way, then each to its number. */
static int place_fds(Run *run) {
        int numbers[RUN_FDS_MAX], keep[RUN_FDS_MAX], least;
        size_t n_keep = 0;

        int r = number_fds(run, numbers, &least);
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
                if (numbers[i] == PROJECT ? fchdir(run->fds[i]) < 0 : dup2(run->fds[i], numbers[i]) < 0)
                        return -errno;
                if (numbers[i] > STDERR_FILENO)
                        keep[n_keep++] = numbers[i];
        }
        run->n_fds = 0; /* as the rest is closed */
        return fd_close_all_except(STDERR_FILENO + 1, keep, n_keep);
}

static int set_limits(const Run *run) {
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

static int pass_gate(int gate, Run *run) {
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

static int wait_for_run(int gate, Run *run) {
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
        _cleanup_(run_done) Run run = {.core = UINT64_MAX, .file_max = UINT64_MAX};

        (void) prctl(PR_SET_NAME, "bailey-ahead");
        populate();
        int r = wait_for_run(gate, &run);
        if (r < 0)
                return r == -ECONNRESET ? r : log_error_errno(r, "What is to be run is not understood: %m");
        (void) prctl(PR_SET_NAME, "bailey");
        environ = run.environment ?: empty;
        run.environment = NULL;
        *ret_argc = (int) strv_length(run.arguments);
        *ret_argv = TAKE_PTR(run.arguments);
        return 0;
}
