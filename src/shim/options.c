/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "shim/limits.h"
#include "shim/options.h"

static const char *const fd_table[_SHIM_FD_MAX] = {
        [SHIM_FD_LAUNCHER] = "launcher",     [SHIM_FD_BAILEY] = "bailey",           [SHIM_FD_PROJECT] = "project",
        [SHIM_FD_POLICY] = "policy",         [SHIM_FD_TRANSCRIPT] = "transcript",   [SHIM_FD_EVENTS] = "events",
        [SHIM_FD_ENVIRONMENT] = "environment", [SHIM_FD_SCRUB] = "scrub",           [SHIM_FD_TOKEN] = "token",
        [SHIM_FD_STDIN] = "stdin",           [SHIM_FD_STDOUT] = "stdout",           [SHIM_FD_STDERR] = "stderr",
        [SHIM_FD_TERMINAL] = "terminal",
};

/* NAME=N */
static int read_fd(ShimOptions *o, const char *value) {
        const char *equal = strchr(value, '=');
        int fd;

        for (ShimFd i = 0; equal && i < _SHIM_FD_MAX; i++) {
                if (strlen(fd_table[i]) != (size_t) (equal - value) || strncmp(fd_table[i], value, (size_t) (equal - value)) != 0)
                        continue;
                if (o->fds[i] >= 0 || parse_fd(equal + 1, &fd) < 0 || fd <= STDERR_FILENO || fd_cloexec(fd, true) < 0)
                        break;
                o->fds[i] = fd;
                return 0;
        }
        log_error("--fd %s: wants NAME=N of a descriptor that is open and was not named before", value);
        return -EINVAL;
}

static int read_number(const char *name, const char *value, uint64_t max, uint64_t *ret) {
        int r = parse_u64(value, max, ret);
        if (r < 0)
                log_error("--%s %s: wants a number up to %llu", name, value, (unsigned long long) max);
        return r;
}

/* Those that hold a text, or that something is so. False: it is none of them. */
static bool read_plain(ShimOptions *o, int c) {
        const struct {
                int c;
                const char **at;
        } texts[] = {{'s', &o->session}, {'p', &o->socket}, {'h', &o->home}, {'b', &o->broker_socket}, {'l', &o->listen}, {'S', &o->scope}};
        const struct {
                int c;
                bool *at;
        } switches[] = {{'i', &o->interactive}, {'t', &o->strict}, {'n', &o->proxy_net}, {'j', &o->journal}, {'H', &o->help}, {'V', &o->version}};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (texts[i].c == c) {
                        *texts[i].at = optarg;
                        return true;
                }
        for (size_t i = 0; i < ELEMENTSOF(switches); i++)
                if (switches[i].c == c) {
                        *switches[i].at = true;
                        return true;
                }
        return false;
}

static int read_option(ShimOptions *o, int c, const char *name) {
        uint64_t number = 0;
        int r;

        switch (c) {
        case 'u':
                return read_number(name, optarg, UINT32_MAX - 1, &o->errandd_uid);
        case 'r':
        case 'c':
                r = read_number(name, optarg, UINT16_MAX, &number);
                *(c == 'r' ? &o->rows : &o->columns) = (uint16_t) number;
                return r;
        case 'a':
                if (o->n_accepted_gaps == ELEMENTSOF(o->accepted_gaps)) {
                        log_error("--accept-gap is given more than %zu times", ELEMENTSOF(o->accepted_gaps));
                        return -EINVAL;
                }
                o->accepted_gaps[o->n_accepted_gaps++] = optarg;
                return 0;
        case 'g':
                r = read_number(name, optarg, GRACE_USEC_MAX / USEC_PER_MSEC, &number);
                o->grace_usec = number * USEC_PER_MSEC;
                return r;
        case 'C':
                if (!streq(optarg, "acp")) {
                        log_error("--conversation %s: wants acp, the only protocol that is known here", optarg);
                        return -EINVAL;
                }
                o->conversation = true;
                return 0;
        case 'x':
                return read_number(name, optarg, CONVERSATION_MSEC_MAX, &o->startup_ms);
        case 'q':
                return read_number(name, optarg, CONVERSATION_MSEC_MAX, &o->question_ms);
        case 'A':
                return read_number(name, optarg, CONVERSATION_MSEC_MAX, &o->abort_ms);
        case 'm':
                return read_number(name, optarg, INT64_MAX, &o->file_max);
        case 'f':
                return read_fd(o, optarg);
        default:
                return read_plain(o, c) ? 0 : -EINVAL;
        }
}

static int check(const ShimOptions *o) {
        static const ShimFd needed[] = {SHIM_FD_LAUNCHER, SHIM_FD_BAILEY, SHIM_FD_PROJECT,     SHIM_FD_POLICY,
                                        SHIM_FD_TRANSCRIPT, SHIM_FD_EVENTS, SHIM_FD_ENVIRONMENT, SHIM_FD_SCRUB};

        for (size_t i = 0; i < ELEMENTSOF(needed); i++)
                if (o->fds[needed[i]] < 0) {
                        log_error("--fd %s=N is missing", fd_table[needed[i]]);
                        return -EINVAL;
                }
        if (!o->session || !o->socket || !o->home || !o->command[0]) {
                log_error("--session, --socket, --home and a command are needed");
                return -EINVAL;
        }
        bool times = o->startup_ms > 0 && o->question_ms > 0 && o->abort_ms > 0;
        if (o->conversation && (!times || o->interactive || o->fds[SHIM_FD_STDIN] >= 0 || o->fds[SHIM_FD_STDOUT] >= 0 || o->fds[SHIM_FD_STDERR] >= 0)) {
                log_error("--conversation needs --startup-ms, --question-ms and --abort-ms, and neither a terminal nor files of the caller's");
                return -EINVAL;
        }
        if (!o->broker_socket != !o->listen || !o->listen != (o->fds[SHIM_FD_TOKEN] < 0)) {
                log_error("--broker-socket, --listen and --fd token=N are given together or not at all");
                return -EINVAL;
        }
        return 0;
}

int shim_options_parse(int argc, char **argv, ShimOptions *ret) {
        static const struct option options[] = {
                {"session", required_argument, NULL, 's'},       {"socket", required_argument, NULL, 'p'},
                {"home", required_argument, NULL, 'h'},          {"broker-socket", required_argument, NULL, 'b'},
                {"listen", required_argument, NULL, 'l'},        {"errandd-uid", required_argument, NULL, 'u'},
                {"interactive", no_argument, NULL, 'i'},         {"strict", no_argument, NULL, 't'},
                {"rows", required_argument, NULL, 'r'},          {"columns", required_argument, NULL, 'c'},
                {"accept-gap", required_argument, NULL, 'a'},    {"grace-ms", required_argument, NULL, 'g'},
                {"scope", required_argument, NULL, 'S'},         {"proxy-net", no_argument, NULL, 'n'},
                {"journal", no_argument, NULL, 'j'},
                {"conversation", required_argument, NULL, 'C'},  {"startup-ms", required_argument, NULL, 'x'},
                {"question-ms", required_argument, NULL, 'q'},   {"abort-ms", required_argument, NULL, 'A'},
                {"file-max", required_argument, NULL, 'm'},      {"fd", required_argument, NULL, 'f'},
                {"help", no_argument, NULL, 'H'},                {"version", no_argument, NULL, 'V'},  {},
        };
        ShimOptions o = {.errandd_uid = getuid(), .grace_usec = 10 * USEC_PER_SEC, .ahead_gate = -EBADF};
        int c, index = 0;

        for (ShimFd i = 0; i < _SHIM_FD_MAX; i++)
                o.fds[i] = -EBADF;
        /* "+": they end at the command. */
        while ((c = getopt_long(argc, argv, "+", options, &index)) >= 0)
                if (read_option(&o, c, options[index].name) < 0)
                        return -EINVAL;
        o.command = argv + optind;
        if (!o.help && !o.version && check(&o) < 0)
                return -EINVAL;
        *ret = o;
        return 0;
}
