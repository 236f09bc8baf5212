/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "bailey/options.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"

typedef struct Option {
        const char *name, *value; /* value: how --help calls it, NULL for a flag */
        unsigned verbs;           /* bits of Verb */
        int (*read)(const struct Option *option, Options *o, const char *value);
        size_t offset;
        const char *help;
} Option;

enum { RUN = 1 << VERB_RUN, SHOW = 1 << VERB_SHOW };

static int read_flag(const Option *option, Options *o, const char *value) {
        (void) value;
        *(bool *) ((char *) o + option->offset) = true;
        return 0;
}

static int read_text(const Option *option, Options *o, const char *value) {
        const char **text = (const char **) (void *) ((char *) o + option->offset);

        if (!*value) {
                log_error("%s wants %s, not an empty word", option->name, option->value);
                return -EINVAL;
        }
        if (*text) {
                log_error("%s is given twice", option->name);
                return -EINVAL;
        }
        *text = value;
        return 0;
}

static int read_fd(const Option *option, Options *o, const char *value) {
        int *at = (int *) (void *) ((char *) o + option->offset), fd;

        if (*at >= 0) {
                log_error("%s is given twice", option->name);
                return -EINVAL;
        }
        if (parse_fd(value, &fd) < 0 || fd <= STDERR_FILENO) {
                log_error("%s %s: wants the number of an open file descriptor above 2", option->name, value);
                return -EINVAL;
        }
        if (fd_cloexec(fd, true) < 0) {
                log_error("%s %s: that file descriptor is not open", option->name, value);
                return -EINVAL;
        }
        const int others[] = {o->broker_token_fd, o->env_fd, o->report_fd, o->console_socket, o->stderr_fd};
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (others[i] == fd) {
                        log_error("%s %s: that file descriptor is named by another option, too", option->name, value);
                        return -EINVAL;
                }
        *at = fd;
        return 0;
}

static int read_listen(const Option *option, Options *o, const char *value) {
        if (parse_loopback_listen(value, &o->listen_address, &o->listen_port) < 0) {
                log_error("%s %s: wants 127.0.0.1:PORT", option->name, value);
                return -EINVAL;
        }
        return 0;
}

static int read_size(const Option *option, Options *o, const char *value) {
        const char *x = strchr(value, 'x');
        uint64_t rows, columns;

        if (!x || parse_u64_n(value, (size_t) (x - value), UINT16_MAX, &rows) < 0 || parse_u64(x + 1, UINT16_MAX, &columns) < 0) {
                log_error("%s %s: wants ROWSxCOLUMNS, as in 24x80", option->name, value);
                return -EINVAL;
        }
        o->rows = (uint16_t) rows;
        o->columns = (uint16_t) columns;
        return 0;
}

static const char *nearest_gap(const char *name) {
        const char *best = "";
        unsigned distance = UINT_MAX;

        for (Gap g = 0; g < _GAP_MAX; g++) {
                unsigned d = string_distance(name, gap_to_string(g));
                if (d < distance) {
                        distance = d;
                        best = gap_to_string(g);
                }
        }
        return best;
}

static int read_gap(const Option *option, Options *o, const char *value) {
        Gap g = gap_from_string(value);

        if (g < 0) {
                log_error("%s %s: there is no such gap; did you mean \"%s\"?", option->name, value, nearest_gap(value));
                return -EINVAL;
        }
        o->accepted_gaps |= (GapSet) 1 << g;
        return 0;
}

static const Option options[] = {
        {"--config", "FILE", RUN | SHOW, read_text, offsetof(Options, config),
         "add a policy file on top of the target and the floor"},
        {"--user", "NAME", RUN | SHOW, read_text, offsetof(Options, user),
         "as root: the account to run as (else SUDO_UID, else the directory's owner)"},
        {"--json", NULL, RUN | SHOW, read_flag, offsetof(Options, json), "print for programs: show's policy, run's closing line"},
        {"--plan", NULL, SHOW, read_flag, offsetof(Options, plan), "print the steps that a run takes"},
        {"--home", "DIR", RUN | SHOW, read_text, offsetof(Options, home), "use that directory for the private home"},
        {"--strict", NULL, RUN, read_flag, offsetof(Options, strict), "refuse to run when anything cannot be enforced here"},
        {"--accept-gap", "NAME", RUN, read_gap, 0,
         "under --strict: that one may be missing (repeatable)"},
        {"--quiet", NULL, RUN, read_flag, offsetof(Options, quiet),
         "do not print what was enforced; what was not is printed always"},
        {"--broker-socket", "PATH", RUN, read_text, offsetof(Options, broker_socket),
         "hand a listener inside to the broker there"},
        {"--broker-token-fd", "N", RUN, read_fd, offsetof(Options, broker_token_fd),
         "read the token of that hand-over from there"},
        {"--listen", "127.0.0.1:PORT", RUN, read_listen, 0, "where that listener is, inside"},
        {"--env-fd", "N", RUN, read_fd, offsetof(Options, env_fd),
         "add KEY=VALUE records from a sealed memfd to the environment"},
        {"--report-fd", "N", RUN, read_fd, offsetof(Options, report_fd), "write one line of JSON there before the target starts"},
        {"--console-socket", "N", RUN, read_fd, offsetof(Options, console_socket), "open a terminal inside and send its master there"},
        {"--console-size", "ROWSxCOLUMNS", RUN, read_size, 0, "how large that terminal is at first"},
        {"--stderr-fd", "N", RUN, read_fd, offsetof(Options, stderr_fd), "the target's standard error; bailey's own stays what it is"},
};

static const char *const verbs[] = {"run", "show"};

void options_print_help(FILE *f) {
        fputs("bailey [run|show] confines a program to what a policy grants.\n\n"
              "  bailey run [OPTION]… [--] TARGET [ARG]…    run a program confined\n"
              "  bailey show [OPTION]… [--] TARGET          print the policy it would run under\n"
              "  bailey --help | --version\n\n"
              "Options of run (r) and show (s); they end at TARGET:\n", f);
        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                char left[48];
                snprintf(left, sizeof(left), "%s%s%s", options[i].name, options[i].value ? " " : "",
                         options[i].value ? options[i].value : "");
                fprintf(f, "  %s%s %-27s %s\n", options[i].verbs & RUN ? "r" : " ", options[i].verbs & SHOW ? "s" : " ", left,
                        options[i].help);
        }
        fputs("\nExit codes: the command's own; 128+N when signal N ended it; 125 nothing was run; 126 the target cannot be\n"
              "executed; 127 it was not found. See bailey(1) and bailey.toml(5).\n", f);
}

static int unknown_option(const char *word, Verb verb) {
        const char *best = NULL;
        unsigned distance = UINT_MAX;

        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                unsigned d = string_distance(word, options[i].name);
                if ((options[i].verbs & (1U << verb)) && d < distance) {
                        distance = d;
                        best = options[i].name;
                }
        }
        log_error("%s: bailey %s has no such option; did you mean %s?", word, verbs[verb], best);
        return -EINVAL;
}

/* Reads the option at argv[*at] and steps over it. */
static int read_option(int argc, char *const *argv, int *at, Options *o) {
        const char *word = argv[*at];
        size_t n = strcspn(word, "=");
        const Option *option = NULL;

        for (size_t i = 0; i < ELEMENTSOF(options); i++)
                if ((options[i].verbs & (1U << o->verb)) && strlen(options[i].name) == n && strncmp(options[i].name, word, n) == 0)
                        option = &options[i];
        if (!option)
                return unknown_option(word, o->verb);
        (*at)++;
        if (!option->value) {
                if (word[n] == '=') {
                        log_error("%s takes no value", option->name);
                        return -EINVAL;
                }
                return option->read(option, o, NULL);
        }
        const char *value = word[n] == '=' ? word + n + 1 : *at < argc ? argv[(*at)++] : NULL;
        if (!value) {
                log_error("%s wants %s", option->name, option->value);
                return -EINVAL;
        }
        return option->read(option, o, value);
}

static int check_together(const Options *o) {
        bool socket = o->broker_socket, token = o->broker_token_fd >= 0, listen = o->listen_port > 0;

        if (socket != token || token != listen) {
                log_error("--broker-socket, --broker-token-fd and --listen are given together or not at all");
                return -EINVAL;
        }
        if (o->accepted_gaps && !o->strict) {
                log_error("--accept-gap does nothing without --strict; give both or none");
                return -EINVAL;
        }
        if (o->stderr_fd >= 0 && o->console_socket >= 0) {
                log_error("--stderr-fd and --console-socket: the target's standard error is either that or the terminal; give one");
                return -EINVAL;
        }
        if (!o->argv[0]) {
                log_error("bailey %s wants a TARGET; see bailey --help", verbs[o->verb]);
                return -EINVAL;
        }
        if (o->verb == VERB_SHOW && o->argv[1]) {
                log_error("bailey show takes one TARGET, without arguments; \"%s\" is too much (options come first)", o->argv[1]);
                return -EINVAL;
        }
        return 0;
}

static int find_verb(const char *word, Verb *ret) {
        if (streq(word, "--help") || streq(word, "-h"))
                *ret = VERB_HELP;
        else if (streq(word, "--version"))
                *ret = VERB_VERSION;
        else if (streq(word, verbs[VERB_RUN]))
                *ret = VERB_RUN;
        else if (streq(word, verbs[VERB_SHOW]))
                *ret = VERB_SHOW;
        else {
                unsigned run = string_distance(word, verbs[VERB_RUN]), show = string_distance(word, verbs[VERB_SHOW]);
                log_error("\"%s\" is not a verb; the verbs are run and show, did you mean \"%s\"? (To run a program: bailey run "
                          "%s)", word, verbs[show < run ? VERB_SHOW : VERB_RUN], word);
                return -EINVAL;
        }
        return 0;
}

int options_parse(int argc, char *const *argv, Options *ret) {
        Options o = {.broker_token_fd = -EBADF, .env_fd = -EBADF, .report_fd = -EBADF, .console_socket = -EBADF,
                     .stderr_fd = -EBADF};
        int at = 2, r;

        if (argc < 2) {
                log_error("a verb is missing: run or show; see bailey --help");
                return -EINVAL;
        }
        r = find_verb(argv[1], &o.verb);
        if (r < 0)
                return r;
        if (o.verb == VERB_RUN || o.verb == VERB_SHOW) {
                while (at < argc && argv[at][0] == '-' && argv[at][1]) {
                        if (streq(argv[at], "--help") || streq(argv[at], "-h")) {
                                *ret = (Options){.verb = VERB_HELP};
                                return 0;
                        }
                        if (streq(argv[at], "--")) {
                                at++;
                                break;
                        }
                        r = read_option(argc, argv, &at, &o);
                        if (r < 0)
                                return r;
                }
                o.argv = argv + at;
                r = check_together(&o);
                if (r < 0)
                        return r;
        }
        *ret = o;
        return 0;
}
