/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is said in a session's thread: "!grant api.example.com 10m" and the like, or a text for its agent. Parsing alone; which permission each needs is in
 * action.c. */

#include "basic/macro.h"

typedef enum SayVerb {
        SAY_PROMPT, /* no command: it goes to the agent as it is */
        SAY_GRANT,
        SAY_REVOKE,
        SAY_GRANTS,
        SAY_ANSWER,
        SAY_INTERRUPT,
        SAY_STOP,
        SAY_STATUS,
        SAY_HELP,
        _SAY_VERB_MAX,
        _SAY_VERB_INVALID = -EINVAL,
} SayVerb;

typedef struct Say {
        SayVerb verb;
        char *host, *duration; /* GRANT, REVOKE without a duration: as they were written */
        uint64_t question;     /* ANSWER: 0, the one that is open */
        char *option;
} Say;

void say_done(Say *s);

/* "!grant"; NULL for SAY_PROMPT. */
const char *say_verb_word(SayVerb v);
/* By the first word alone. _SAY_VERB_INVALID: it begins with '!' and is no command. */
SayVerb say_find(const char *text);
/* -EBADMSG with *ret_problem, a sentence to free, which names the commands, or the form of the one that was meant. */
int say_parse(const char *text, Say *ret, char **ret_problem);
/* The commands in a paragraph, to free; NULL: out of memory. */
char *say_help(void);
