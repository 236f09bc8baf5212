/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/say.h"

#define SPACE " \t\r\n"
#define SHOWN_MAX 32 /* bytes of what was said that an error repeats */

static int parse_grant(const char *rest, Say *s);
static int parse_revoke(const char *rest, Say *s);
static int parse_answer(const char *rest, Say *s);

static const struct {
        const char *word, *arguments, *summary;
        int (*parse)(const char *rest, Say *s); /* NULL: it takes nothing */
} table[_SAY_VERB_MAX] = {
        [SAY_GRANT] = {"!grant", "HOST [DURATION]", "lets the session reach a host: its next connection (once), for a time (10m), or always", parse_grant},
        [SAY_REVOKE] = {"!revoke", "HOST", "takes that back", parse_revoke},
        [SAY_GRANTS] = {"!grants", NULL, "lists what is granted", NULL},
        [SAY_ANSWER] = {"!answer", "[NUMBER] OPTION", "answers a question of the agent's", parse_answer},
        [SAY_INTERRUPT] = {"!interrupt", NULL, "ends the agent's turn and drops what waits", NULL},
        [SAY_STOP] = {"!stop", NULL, "stops the session", NULL},
        [SAY_STATUS] = {"!status", NULL, "tells how it is", NULL},
        [SAY_HELP] = {"!help", NULL, "tells this", NULL},
};

void say_done(Say *s) {
        free(s->host);
        free(s->duration);
        free(s->option);
        *s = (Say){};
}

const char *say_verb_word(SayVerb v) {
        return v >= 0 && v < _SAY_VERB_MAX ? table[v].word : NULL;
}

SayVerb say_find(const char *text) {
        size_t n = strcspn(text, SPACE);

        if (text[0] != '!')
                return SAY_PROMPT;
        for (size_t i = SAY_PROMPT + 1; i < _SAY_VERB_MAX; i++)
                if (strlen(table[i].word) == n && strncmp(table[i].word, text, n) == 0)
                        return (SayVerb) i;
        return _SAY_VERB_INVALID;
}

/* Without the space around it; to free. */
static char *trimmed(const char *text, size_t size) {
        while (size > 0 && strchr(SPACE, text[size - 1]))
                size--;
        return strndup(text, size);
}

/* The next word of *at, which is moved to the one after; NULL: there is none. */
static char *next_word(const char **at) {
        size_t n = strcspn(*at, SPACE);
        char *word = n > 0 ? strndup(*at, n) : NULL;

        *at += n;
        *at += strspn(*at, SPACE);
        return word;
}

static int parse_grant(const char *rest, Say *s) {
        s->host = next_word(&rest);
        s->duration = *rest ? trimmed(rest, strlen(rest)) : strdup("once");
        return s->host && s->duration ? 0 : -EINVAL;
}

static int parse_revoke(const char *rest, Say *s) {
        s->host = next_word(&rest);
        return s->host && !*rest ? 0 : -EINVAL;
}

/* An option may have any name, also that of a number: a number is a question's where something follows it. */
static int parse_answer(const char *rest, Say *s) {
        size_t digits = strspn(rest, "0123456789");

        if (digits > 0 && digits <= 18 && rest[digits] && strchr(SPACE, rest[digits])) {
                const char *after = rest + digits + strspn(rest + digits, SPACE);

                if (*after) {
                        s->question = strtoull(rest, NULL, 10);
                        rest = after;
                        if (s->question == 0) /* that of no question */
                                return -EINVAL;
                }
        }
        s->option = *rest ? trimmed(rest, strlen(rest)) : NULL;
        return s->option ? 0 : -EINVAL;
}

static char *list_commands(void) {
        _cleanup_free_ char *list = NULL;

        for (size_t i = SAY_PROMPT + 1; i < _SAY_VERB_MAX; i++)
                if (string_append(&list, "%s%s", !list ? "" : i + 1 < _SAY_VERB_MAX ? ", " : " and ", table[i].word) < 0)
                        return NULL;
        return TAKE_PTR(list);
}

static int unknown(const char *text, char **ret_problem) {
        size_t n = strcspn(text, SPACE), shown = MIN(n, (size_t) SHOWN_MAX);
        _cleanup_free_ char *word = strndup(text, shown), *clean = word ? string_escape_control(word) : NULL, *commands = list_commands();

        if (!clean || !commands)
                return -ENOMEM;
        return problem_set(ret_problem, "%s%s is no command; there are %s, and what does not begin with ! is said to the agent", clean, n > shown ? "..." : "",
                           commands);
}

static int misused(SayVerb v, char **ret_problem) {
        if (!table[v].parse)
                return problem_set(ret_problem, "%s takes nothing after it", table[v].word);
        return problem_set(ret_problem, "%s is written: %s %s", table[v].word, table[v].word, table[v].arguments);
}

int say_parse(const char *text, Say *ret, char **ret_problem) {
        Say s = {.verb = say_find(text)};
        const char *rest = text + strcspn(text, SPACE);

        if (s.verb < 0)
                return unknown(text, ret_problem);
        if (s.verb != SAY_PROMPT) {
                rest += strspn(rest, SPACE);
                int r = table[s.verb].parse ? table[s.verb].parse(rest, &s) : *rest ? -EINVAL : 0;
                if (r < 0) {
                        say_done(&s);
                        return misused(say_find(text), ret_problem);
                }
        }
        *ret = s;
        return 0;
}

char *say_help(void) {
        _cleanup_free_ char *help = NULL;
        int r = 0;

        for (size_t i = SAY_PROMPT + 1; i < _SAY_VERB_MAX && r >= 0; i++)
                r = string_append(&help, "%s%s%s%s %s", help ? "; " : "", table[i].word, table[i].arguments ? " " : "", table[i].arguments ?: "",
                                  table[i].summary);
        if (r >= 0)
                r = string_append(&help, ". What does not begin with ! is said to the agent.");
        return r < 0 ? NULL : TAKE_PTR(help);
}
