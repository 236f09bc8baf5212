/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "bailey/network.h"
#include "bailey/options.h"
#include "basic/fd.h"
#include "basic/json-writer.h"
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

enum {
        RUN = 1 << VERB_RUN,
        SHOW = 1 << VERB_SHOW,
        SHELL = 1 << VERB_SHELL,
        TRUST = 1 << VERB_TRUST,
        PROFILE_LIST = 1 << VERB_PROFILE_LIST,
        PROFILE_SHOW = 1 << VERB_PROFILE_SHOW,
        DOCTOR = 1 << VERB_DOCTOR,
        PROFILE_GENERATE = 1 << VERB_PROFILE_GENERATE,
        AUDIT = 1 << VERB_AUDIT,
        POLICY = AUDIT | RUN | SHOW | SHELL,
};

/* The verbs, in the order of their help. */
typedef struct VerbWords {
        Verb verb;
        const char *name, *operands, *help;
        unsigned least, most; /* operands */
} VerbWords;

static const VerbWords verbs[] = {
        {VERB_RUN, "run", "[--] TARGET [ARG]…", "run a program confined", 1, UINT_MAX},
        {VERB_SHOW, "show", "[--] TARGET", "print the policy it would run under", 1, 1},
        {VERB_SHELL, "shell", "[--] [ARG]…", "start a shell confined to this directory's policy", 0, UINT_MAX},
        {VERB_AUDIT, "audit", "[--] TARGET [ARG]…", "run it, and list what its policy does not grant", 1, UINT_MAX},
        {VERB_TRUST, "trust", "FILE", "accept a bailey.toml that was found by walking", 0, 1},
        {VERB_PROFILE_LIST, "profile list", "", "list the profiles there are", 0, 0},
        {VERB_PROFILE_SHOW, "profile show", "NAME", "print one", 1, 1},
        {VERB_PROFILE_GENERATE, "profile generate", "", "turn an audit's trace into a policy", 0, 0},
        {VERB_DOCTOR, "doctor", "", "try what confines a run, and say how to close gaps", 0, 0},
};

static const char *verb_name(Verb verb) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (verbs[i].verb == verb)
                        return verbs[i].name;
        return NULL;
}

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

static int read_proxy(const Option *option, Options *o, const char *value) {
        const char *colon = strrchr(value, ':');
        _cleanup_free_ char *host = colon ? strndup(value, (size_t) (colon - value)) : NULL;
        struct in_addr address;

        if (o->proxy_port) {
                log_error("%s is given twice", option->name);
                return -EINVAL;
        }
        if (!host || inet_pton(AF_INET, host, &address) != 1 || parse_port(colon + 1, &o->proxy_port) < 0) {
                log_error("%s %s: wants ADDRESS:PORT with an IPv4 address, as in 169.254.169.1:8443", option->name, value);
                return -EINVAL;
        }
        if (!network_proxy_address_valid(address)) {
                log_error("%s %s: the host's loopback cannot be mapped at that address; choose one that nobody has, as 169.254.169.1",
                          option->name, value);
                return -EINVAL;
        }
        o->proxy_address = address.s_addr;
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

static void unknown_gap(const Option *option, const char *name) {
        char known[512] = "";
        const char *best = NULL;
        unsigned distance = UINT_MAX;

        for (Gap g = 0; g < _GAP_MAX; g++) {
                unsigned d = string_distance(name, gap_to_string(g));
                size_t n = strlen(known);
                (void) snprintf(known + n, sizeof(known) - n, "%s%s", n > 0 ? ", " : "", gap_to_string(g));
                if (d < distance) {
                        distance = d;
                        best = gap_to_string(g);
                }
        }
        if (string_distance_near(name, distance))
                log_error("%s %s: there is no such gap; did you mean \"%s\"?", option->name, name, best);
        else
                log_error("%s %s: there is no such gap; they are %s", option->name, name, known);
}

static int read_gap(const Option *option, Options *o, const char *value) {
        Gap g = gap_from_string(value);

        if (g < 0) {
                unknown_gap(option, value);
                return -EINVAL;
        }
        o->accepted_gaps |= (GapSet) 1 << g;
        return 0;
}

static const Option options[] = {
        {"--config", "FILE", POLICY, read_text, offsetof(Options, config), "add a policy file on top of all others"},
        {"--profile", "NAME", POLICY, read_text, offsetof(Options, profile), "start from that profile"},
        {"--only-config", NULL, POLICY, read_flag, offsetof(Options, only_config), "read no policy file but that of --config, if any"},
        {"--user", "NAME", POLICY | TRUST | PROFILE_LIST | PROFILE_SHOW | DOCTOR, read_text, offsetof(Options, user),
         "as root: whose work it is (else SUDO_UID's, else the directory's owner's)"},
        {"--json", NULL, RUN | SHOW | SHELL | TRUST | PROFILE_LIST | DOCTOR, read_flag, offsetof(Options, json),
         "print for programs: the policy, the list, what was found, a run's closing line"},
        {"--plan", NULL, SHOW, read_flag, offsetof(Options, plan), "print the steps that a run takes"},
        {"--home", "DIR", POLICY, read_text, offsetof(Options, home), "use that directory for the private home"},
        {"--strict", NULL, RUN | SHELL | AUDIT, read_flag, offsetof(Options, strict), "refuse to run when anything cannot be enforced here"},
        {"--accept-gap", "NAME", RUN | SHELL | AUDIT, read_gap, 0,
         "under --strict: that one may be missing (repeatable)"},
        {"--quiet", NULL, RUN | SHELL | AUDIT, read_flag, offsetof(Options, quiet),
         "do not print what was enforced; what was not is printed always"},
        {"--explain", NULL, RUN | SHELL, read_flag, offsetof(Options, explain), "when it fails, tell what was refused, and what would grant it"},
        {"--save-trace", "FILE", AUDIT, read_text, offsetof(Options, save_trace), "write what was seen there"},
        {"--unconfined", NULL, AUDIT, read_flag, offsetof(Options, unconfined), "enforce nothing, only look"},
        {"--trace", "FILE", PROFILE_GENERATE, read_text, offsetof(Options, trace), "the trace that an audit saved"},
        {"--target", "PATH", PROFILE_GENERATE, read_text, offsetof(Options, target), "the program that was audited"},
        {"--include-high-risk", NULL, PROFILE_GENERATE, read_flag, offsetof(Options, include_high_risk),
         "grant also what is listed apart"},
        {"--accept-truncated", NULL, PROFILE_GENERATE, read_flag, offsetof(Options, accept_truncated),
         "take a trace that lost something"},
        {"--yes", NULL, TRUST, read_flag, offsetof(Options, yes), "accept without asking"},
        {"--list", NULL, TRUST, read_flag, offsetof(Options, list), "list what was accepted, and whether it still is that"},
        {"--revoke", NULL, TRUST, read_flag, offsetof(Options, revoke), "take back: FILE is a path or a digest, there or not"},
        {"--no-isolate", NULL, RUN | SHOW | SHELL, read_flag, offsetof(Options, no_isolate),
         "Landlock and seccomp alone: what is not granted stays visible"},
        {"--proxy-net", NULL, RUN | SHOW | SHELL, read_flag, offsetof(Options, proxy_net),
         "a network namespace of its own, connected by pasta: the host's address is not seen"},
        {"--egress-proxy", "ADDR:PORT", RUN | SHOW | SHELL, read_proxy, 0,
         "the same, and TCP to what listens on the host's loopback, mapped there, is all"},
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

/* One letter a verb, for the columns of the help. */
static void verb_letters(unsigned set, char ret[7]) {
        static const struct {
                unsigned bits;
                char letter;
        } letters[6] = {{RUN, 'r'}, {SHOW, 's'}, {SHELL, 'h'}, {AUDIT, 'a'}, {TRUST, 't'}, {PROFILE_GENERATE, 'g'}};

        for (size_t i = 0; i < ELEMENTSOF(letters); i++)
                ret[i] = set & letters[i].bits ? letters[i].letter : ' ';
        ret[ELEMENTSOF(letters)] = 0;
}

#define HELP_COLUMNS 80U

/* `left`, then `text` from that column on, broken between words. */
static void print_columns(FILE *f, const char *left, size_t column, const char *text) {
        size_t at = 0;

        for (const char *p = left; *p; p++)
                at += ((unsigned char) *p & 0xc0) != 0x80; /* a character of more bytes is one column */
        fputs(left, f);
        if (at >= column) {
                fputc('\n', f);
                at = 0;
        }
        while (*text) {
                size_t n = strcspn(text, " ");

                if (at > column && at + 1 + n > HELP_COLUMNS) {
                        fputc('\n', f);
                        at = 0;
                }
                int gap = at < column ? (int) (column - at) : 1;
                fprintf(f, "%*s%.*s", gap, "", (int) n, text);
                at += (size_t) gap + n;
                text += n + (text[n] == ' ');
        }
        fputc('\n', f);
}

void options_print_help(FILE *f) {
        fputs("bailey confines a program to what a policy grants.\n\n", f);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                char left[64];
                (void) snprintf(left, sizeof(left), "  bailey %s [OPTION]… %s", verbs[i].name, verbs[i].operands);
                print_columns(f, left, 44, verbs[i].help);
        }
        fputs("  bailey --help | --version\n\n"
              "Options of run (r), show (s), shell (h), audit (a), trust (t) and profile\n"
              "generate (g); they end at what they are for:\n", f);
        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                char left[64], letters[7];
                verb_letters(options[i].verbs, letters);
                (void) snprintf(left, sizeof(left), "  %s %s%s%s", letters, options[i].name, options[i].value ? " " : "",
                                options[i].value ? options[i].value : "");
                print_columns(f, left, 34, options[i].help);
        }
        fputs("\nExit codes: the command's own; 128+N when signal N ended it; 125 nothing was\n"
              "run; 126 the target cannot be executed; 127 it was not found. See bailey(1)\n"
              "and bailey.toml(5).\n", f);
}

int options_print_verbs(FILE *f) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        json_open_array(&w, NULL);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                json_open_object(&w, NULL);
                json_add_string(&w, "verb", verbs[i].name);
                json_open_array(&w, "options");
                for (size_t k = 0; k < ELEMENTSOF(options); k++) {
                        if (!(options[k].verbs & (1U << verbs[i].verb)))
                                continue;
                        json_open_object(&w, NULL);
                        json_add_string(&w, "name", options[k].name);
                        json_add_string(&w, "value", options[k].value);
                        json_close_object(&w);
                }
                json_close_array(&w);
                json_close_object(&w);
        }
        json_close_array(&w);
        return json_writer_print(&w, f);
}

/* The verbs that have an option, as text: "bailey run, bailey shell". */
static void option_verbs(const Option *option, char *ret, size_t size) {
        ret[0] = 0;
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (option->verbs & (1U << verbs[i].verb)) {
                        size_t n = strlen(ret);
                        (void) snprintf(ret + n, size - n, "%sbailey %s", n > 0 ? ", " : "", verbs[i].name);
                }
}

static int unknown_option(const char *word, Verb verb) {
        const Option *best = &options[0];
        unsigned distance = UINT_MAX;

        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                unsigned d = string_distance(word, options[i].name);
                if (d < distance) {
                        distance = d;
                        best = &options[i];
                }
        }
        bool elsewhere = !(best->verbs & (1U << verb));
        if (distance == 0 && elsewhere) {
                char text[128];
                option_verbs(best, text, sizeof(text));
                log_error("%s: bailey %s has no such option; it is one of %s", word, verb_name(verb), text);
        } else if (string_distance_near(word, distance) && !elsewhere)
                log_error("%s: bailey %s has no such option; did you mean %s?", word, verb_name(verb), best->name);
        else if (verb == VERB_SHELL)
                log_error("%s: bailey shell has no such option; see bailey --help (what is the shell's goes behind --: bailey shell -- %s)",
                          word, word);
        else
                log_error("%s: bailey %s has no such option; see bailey --help", word, verb_name(verb));
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
        if (socket && (o->proxy_net || o->proxy_port)) {
                log_error("--broker-socket is a way out of its own; --proxy-net and --egress-proxy are another; give one");
                return -EINVAL;
        }
        if (socket && o->no_isolate) {
                log_error("--no-isolate and --broker-socket: sockets at paths would be a way around the broker; give one");
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
        if (o->verb == VERB_PROFILE_GENERATE && (!o->trace || !o->target)) {
                log_error("bailey profile generate wants --trace FILE and --target PATH");
                return -EINVAL;
        }
        if (o->json && o->explain) {
                log_error("--json and --explain: what is explained is for people; give one");
                return -EINVAL;
        }
        if (o->unconfined && o->strict) {
                log_error("--unconfined enforces nothing, and --strict everything; give one");
                return -EINVAL;
        }
        if (o->json && o->plan) {
                log_error("--json and --plan print different things; give one");
                return -EINVAL;
        }
        return 0;
}

static int check_trust(const Options *o) {
        if (o->list + o->revoke + o->yes > 1) {
                log_error("--list, --revoke and --yes are different things to do; give one");
                return -EINVAL;
        }
        if (o->json && !o->list) {
                log_error("bailey trust prints for programs with --list alone");
                return -EINVAL;
        }
        if (o->list && o->argv[0]) {
                log_error("bailey trust --list takes no FILE, and \"%s\" is one", o->argv[0]);
                return -EINVAL;
        }
        if (!o->list && !o->argv[0]) {
                log_error("bailey trust wants a FILE, or --list; see bailey --help");
                return -EINVAL;
        }
        return 0;
}

static int check_operands(const Options *o, const VerbWords *v) {
        unsigned n = (unsigned) strv_length(o->argv);

        if (n < v->least) {
                log_error("bailey %s wants a %s; see bailey --help", v->name, o->verb == VERB_PROFILE_SHOW ? "NAME" : "TARGET");
                return -EINVAL;
        }
        if (n > v->most && o->verb == VERB_SHOW) {
                log_error("bailey show takes one TARGET, without arguments; \"%s\" is too much (options come first)", o->argv[1]);
                return -EINVAL;
        }
        if (n > v->most) {
                log_error("bailey %s: \"%s\" is too much (options come first)", v->name, o->argv[v->most]);
                return -EINVAL;
        }
        return o->verb == VERB_TRUST ? check_trust(o) : 0;
}

static bool is_option(const char *word) {
        size_t n = strcspn(word, "=");

        for (size_t i = 0; i < ELEMENTSOF(options); i++)
                if ((options[i].verbs & RUN) && strlen(options[i].name) == n && strncmp(options[i].name, word, n) == 0)
                        return true;
        return false;
}

static int unknown_verb(const char *word) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                size_t n = strcspn(verbs[i].name, " ");
                char first[16];

                (void) snprintf(first, sizeof(first), "%.*s", (int) n, verbs[i].name);
                unsigned distance = string_distance(word, first);
                /* Programs have short names, too: "true" is none of "trust". */
                if (word[0] == first[0] && (distance < 2 || strlen(word) == n) && string_distance_near(word, distance)) {
                        log_error("\"%s\" is not a verb; did you mean \"%s\"? To run a program of that name: bailey run %s", word, first,
                                  word);
                        return -EINVAL;
                }
        }
        if (word[0] == '-' && is_option(word))
                log_error("%s: options come after the verb, as in bailey run %s; see bailey --help", word, word);
        else if (word[0] == '-')
                log_error("%s: there is no such option, and a verb comes first: run, show, shell, audit, trust, profile or doctor; see bailey --help",
                          word);
        else
                log_error("\"%s\" is not a verb; to run a program: bailey run %s; see bailey --help", word, word);
        return -EINVAL;
}

/* *at is behind the verb's word or words then. */
static int find_verb(int argc, char *const *argv, int *at, const VerbWords **ret) {
        const char *word = argv[1], *second = argc > 2 ? argv[2] : "";
        bool half = false;

        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                size_t n = strcspn(verbs[i].name, " ");
                const char *more = verbs[i].name + n;

                if (strncmp(word, verbs[i].name, n) != 0 || word[n] != 0)
                        continue;
                half = true;
                if (*more && !streq(second, more + 1))
                        continue;
                *at = *more ? 3 : 2;
                *ret = &verbs[i];
                return 0;
        }
        if (!half)
                return unknown_verb(word);
        if (streq(second, "--help") || streq(second, "-h")) {
                *ret = NULL;
                return 0;
        }
        if (*second)
                log_error("bailey %s has no \"%s\"; it has list, show and generate", word, second);
        else
                log_error("bailey %s wants list, show or generate", word);
        return -EINVAL;
}

static bool find_plain(const char *word, Verb *ret) {
        if (streq(word, "--help") || streq(word, "-h"))
                *ret = VERB_HELP;
        else if (streq(word, "--version"))
                *ret = VERB_VERSION;
        else if (streq(word, "--print-verbs"))
                *ret = VERB_PRINT_VERBS;
        else
                return false;
        return true;
}

int options_parse(int argc, char *const *argv, Options *ret) {
        Options o = {.broker_token_fd = -EBADF, .env_fd = -EBADF, .report_fd = -EBADF, .console_socket = -EBADF,
                     .stderr_fd = -EBADF};
        const VerbWords *words = NULL;
        int at = 2, r;

        if (argc < 2) {
                log_error("a verb is missing: run, show, shell, audit, trust, profile or doctor; see bailey --help");
                return -EINVAL;
        }
        if (find_plain(argv[1], &o.verb)) {
                *ret = o;
                return 0;
        }
        r = find_verb(argc, argv, &at, &words);
        if (r < 0)
                return r;
        while (words && at < argc && argv[at][0] == '-' && argv[at][1]) {
                o.verb = words->verb;
                if (streq(argv[at], "--help") || streq(argv[at], "-h"))
                        words = NULL;
                else if (streq(argv[at], "--")) {
                        at++;
                        break;
                } else {
                        r = read_option(argc, argv, &at, &o);
                        if (r < 0)
                                return r;
                }
        }
        if (!words) {
                *ret = (Options){.verb = VERB_HELP};
                return 0;
        }
        o.verb = words->verb;
        o.argv = argv + at;
        r = check_together(&o);
        if (r >= 0)
                r = check_operands(&o, words);
        if (r >= 0)
                *ret = o;
        return r;
}
