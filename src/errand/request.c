/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>

#include "basic/log.h"
#include "basic/text.h"
#include "errand/verbs.h"

#define DISTANCE_FAR 4U /* a suggestion further away would be a guess */

void request_done(Request *q) {
        q->allow = strv_free(q->allow);
        q->env = strv_free(q->env);
        free(q->operand_list);
        q->operand_list = NULL;
}

/* How far a word is from a verb: from its words together, or from its last one alone ("list" is near "session list"). */
static unsigned verb_distance(const char *words, const Verb *v) {
        unsigned whole = string_distance(words, verb_words(v)), last = string_distance(words, v->name);

        return v->group ? MIN(whole, last + 1) : whole;
}

static unsigned nearest_verb(const char *words, const Verb **ret) {
        unsigned distance = UINT_MAX;

        for (size_t i = 0; i < n_verbs; i++) {
                unsigned d = verb_distance(words, verbs + i);
                if (d < distance) {
                        distance = d;
                        *ret = verbs + i;
                }
        }
        return distance;
}

static int unknown_verb(const char *first, const char *second) {
        const Verb *best = NULL, *one = NULL;
        char words[128];
        unsigned distance;

        (void) snprintf(words, sizeof(words), "%.50s %.50s", first, second ?: "");
        distance = nearest_verb(first, &best);
        /* Two words are a verb and its group when they are near one, and else a verb and an operand. */
        if (second && nearest_verb(words, &one) < DISTANCE_FAR && one->group) {
                distance = nearest_verb(words, &best);
                first = words;
        }
        if (distance < DISTANCE_FAR && distance < strlen(first))
                log_error("\"%s\" is no verb; did you mean \"errand %s\"?", first, verb_words(best));
        else
                log_error("\"%s\" is no verb; errand --help lists them (to run a program: errand run -- %s)", first, first);
        return -EINVAL;
}

static int verb_missing(const char *group) {
        char list[256] = "";
        size_t n = 0;

        for (size_t i = 0; i < n_verbs; i++)
                if (verbs[i].group && streq(verbs[i].group, group))
                        n += (size_t) snprintf(list + n, sizeof(list) - n, "%s%s", n > 0 ? ", " : "", verbs[i].name);
        log_error("errand %s wants one of these: %s", group, list);
        return -EINVAL;
}

static int find_verb(int argc, char *const *argv, int *at, const Verb **ret) {
        const char *first = argv[*at], *second = NULL;

        if (verb_is_group(first)) {
                if (*at + 1 < argc && (streq(argv[*at + 1], "--help") || streq(argv[*at + 1], "-h"))) {
                        *ret = NULL; /* the help that has them all */
                        return 0;
                }
                if (*at + 1 >= argc || argv[*at + 1][0] == '-')
                        return verb_missing(first);
                second = argv[*at + 1];
        }
        for (size_t i = 0; i < n_verbs; i++) {
                const Verb *v = verbs + i;

                if (second ? v->group && streq(v->group, first) && streq(v->name, second) : !v->group && streq(v->name, first)) {
                        *at += second ? 2 : 1;
                        *ret = v;
                        return 0;
                }
        }
        return unknown_verb(first, *at + 1 < argc && argv[*at + 1][0] != '-' ? argv[*at + 1] : NULL);
}

static int unknown_option(const char *word, const Verb *v) {
        const char *best = NULL;
        unsigned distance = UINT_MAX;
        size_t n = strcspn(word, "=");
        char name[80];

        (void) snprintf(name, sizeof(name), "%.*s", (int) MIN(n, sizeof(name) - 1), word);
        for (size_t i = 0; i < n_options; i++) {
                unsigned d = string_distance(name, options[i].name);
                if (option_belongs(options + i, v) && d < distance) {
                        distance = d;
                        best = options[i].name;
                }
        }
        if (best && distance < DISTANCE_FAR && name[1] == '-' && string_distance_near(name + 2, distance))
                log_error("%s: errand %s has no such option; did you mean %s?", name, verb_words(v), best);
        else
                log_error("%s: errand %s has no such option; errand %s --help lists them (an operand that begins with - goes behind --)",
                          name, verb_words(v), verb_words(v));
        return -EINVAL;
}

static const Option *find_option(const char *word, size_t n, const Verb *v) {
        for (size_t i = 0; i < n_options; i++) {
                const Option *o = options + i;

                if (option_belongs(o, v) && ((strlen(o->name) == n && strncmp(o->name, word, n) == 0) || (o->brief && streq(o->brief, word))))
                        return o;
        }
        return NULL;
}

static int set_option(const Option *o, const char *value, Request *q) {
        void *field = (char *) q + o->offset;

        switch (o->kind) {
        case OPTION_FLAG:
                *(bool *) field = true;
                return 0;
        case OPTION_LIST:
                return strv_extend(field, value);
        default:
                if (*(const char **) field) {
                        log_error("%s is given twice: \"%s\" and \"%s\"", o->name, *(const char **) field, value);
                        return -EINVAL;
                }
                if (!*value) {
                        log_error("%s is empty; it wants %s", o->name, o->value);
                        return -EINVAL;
                }
                *(const char **) field = value;
                return 0;
        }
}

/* Shows where it belongs, when a verb comes later. */
static int early_option(int argc, char *const *argv) {
        const Verb *v = NULL;

        for (int i = 2; i < argc && !v; i++)
                for (size_t k = 0; k < n_verbs && !v; k++) {
                        const char *last = verbs[k].group ? (i + 1 < argc ? argv[i + 1] : "") : argv[i];

                        if (streq(verbs[k].name, last) && (!verbs[k].group || streq(verbs[k].group, argv[i])))
                                v = verbs + k;
                }
        if (v)
                log_error("%s: options come after the verb: errand %s %s", argv[1], verb_words(v), argv[1]);
        else
                log_error("%s: options come after the verb; errand --help lists the verbs", argv[1]);
        return -EINVAL;
}

/* Reads the option at argv[*at] and steps over it. */
static int read_option(int argc, char *const *argv, int *at, Request *q) {
        const char *word = argv[*at], *value;
        size_t n = strcspn(word, "=");
        const Option *o = find_option(word, n, q->verb);

        if (!o)
                return unknown_option(word, q->verb);
        (*at)++;
        if (o->kind == OPTION_FLAG) {
                if (word[n] == '=') {
                        log_error("%s takes no value", o->name);
                        return -EINVAL;
                }
                return set_option(o, NULL, q);
        }
        value = word[n] == '=' ? word + n + 1 : *at < argc ? argv[(*at)++] : NULL;
        if (!value) {
                log_error("%s wants %s", o->name, o->value);
                return -EINVAL;
        }
        return set_option(o, value, q);
}

static int check_operands(const Request *q) {
        const Verb *v = q->verb;

        if (q->n_operands < v->min) {
                log_error("errand %s wants %s; see errand %s --help", verb_words(v), v->operands, verb_words(v));
                return -EINVAL;
        }
        if (q->n_operands > v->max) {
                log_error("errand %s takes %s%s; \"%s\" is too much", verb_words(v), *v->operands ? "" : "no operands", v->operands,
                          q->operands[v->max]);
                return -EINVAL;
        }
        if (q->keep_terminal && q->no_terminal) {
                log_error("--terminal and --no-terminal contradict each other");
                return -EINVAL;
        }
        if (q->protocol && !streq(q->protocol, "none") && !streq(q->protocol, "acp")) {
                log_error("--protocol %.64s: there are acp and none", q->protocol);
                return -EINVAL;
        }
        if (q->keep_terminal && q->protocol && streq(q->protocol, "acp")) {
                log_error("--terminal and --protocol acp contradict each other: the agent's input and output are the conversation");
                return -EINVAL;
        }
        if (q->system + q->user + q->embedded > 1) {
                log_error("--system, --user and --embedded contradict each other: each names another errandd");
                return -EINVAL;
        }
        if ((q->system || q->user) && (q->state_dir || q->config || q->account)) {
                log_error("--state-dir, --config and --account are an embedded errandd's; the one that %s names has its own",
                          q->system ? "--system" : "--user");
                return -EINVAL;
        }
        if (q->embedded && q->no_start) {
                log_error("--embedded and --no-start contradict each other");
                return -EINVAL;
        }
        return 0;
}

static int read_words(int argc, char *const *argv, int at, Request *q) {
        bool ended = false;
        int r;

        q->operand_list = calloc((size_t) argc + 1, sizeof(char *));
        if (!q->operand_list)
                return log_oom();
        while (at < argc) {
                const char *word = argv[at];

                if (!ended && streq(word, "--")) {
                        ended = true;
                        at++;
                        continue;
                }
                if (!ended && word[0] == '-' && word[1]) {
                        r = read_option(argc, argv, &at, q);
                        if (r < 0)
                                return r;
                        if (q->help)
                                return 0;
                        continue;
                }
                q->operand_list[q->n_operands++] = argv[at++];
                ended = ended || q->verb->command;
        }
        q->operands = q->operand_list;
        return check_operands(q);
}

int request_parse(int argc, char *const *argv, Request *ret) {
        int at = 1, r;

        *ret = (Request){};
        if (argc < 2) {
                log_error("a verb is missing; errand --help lists them (to run a program: errand run -- PROGRAM)");
                return -EINVAL;
        }
        if (argv[1][0] == '-') {
                if (streq(argv[1], "--help") || streq(argv[1], "-h"))
                        ret->help = true;
                else if (streq(argv[1], "--version"))
                        ret->version = true;
                else if (streq(argv[1], "--print-verbs"))
                        ret->print_verbs = true;
                else
                        return early_option(argc, argv);
                return 0;
        }
        r = find_verb(argc, argv, &at, &ret->verb);
        if (r >= 0 && !ret->verb)
                ret->help = true;
        return r < 0 || !ret->verb ? r : read_words(argc, argv, at, ret);
}
