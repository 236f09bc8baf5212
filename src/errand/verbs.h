/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one table of verbs and the one table of options. Help, completions and man page are made from it or compared with it. */

#include "errand/exit.h"
#include "errand/request.h"

/* Which options a verb takes. */
typedef enum OptionGroup {
        OPTIONS_COMMON = 1 << 0, /* every verb */
        OPTIONS_DAEMON = 1 << 1, /* verbs that talk to errandd */
        OPTIONS_CREATE = 1 << 2, /* what a session is made with */
        OPTIONS_RUN = 1 << 3,
        OPTIONS_OUTPUT = 1 << 4, /* verbs that list or show */
        OPTIONS_FOLLOW = 1 << 5,
        OPTIONS_RECEIPTS = 1 << 6,
        OPTIONS_KILL = 1 << 7,
        OPTIONS_ALL = 1 << 8,
        OPTIONS_START = 1 << 9,
        OPTIONS_EVENTS = 1 << 10,
        OPTIONS_MODE = 1 << 11, /* which errandd is meant, without talking to it */
        OPTIONS_PROTOCOL = 1 << 12,
        OPTIONS_PROMPT = 1 << 13,
        OPTIONS_TABLE = 1 << 14, /* verbs that print a table */
} OptionGroup;

struct Verb {
        const char *group; /* "session", or NULL */
        const char *name;
        const char *operands; /* for the synopsis; "" for none */
        unsigned min, max;    /* operands */
        bool command;         /* operands are a command: options end at the first of them */
        unsigned options;     /* OptionGroup bits, beside OPTIONS_COMMON */
        const char *summary;
        int (*run)(const Request *q); /* an ExitCode, or the command's */
};

typedef enum OptionKind {
        OPTION_FLAG,
        OPTION_TEXT, /* given twice, it is refused */
        OPTION_LIST,
} OptionKind;

typedef struct Option {
        const char *name; /* with its dashes */
        const char *brief; /* "-f", or NULL */
        const char *value;
        OptionKind kind;
        unsigned groups;
        size_t offset; /* in Request */
        const char *help;
} Option;

extern const Verb verbs[];
extern const size_t n_verbs;
extern const Option options[];
extern const size_t n_options;

bool option_belongs(const Option *o, const Verb *v);
bool verb_is_group(const char *word);

/* The words of a verb, "session list"; valid until the next call. */
const char *verb_words(const Verb *v);

/* How many of its first operands are sessions' ids: by the word ID in the synopsis. */
unsigned verb_ids(const Verb *v);

void verbs_print_help(FILE *f);
void verb_print_help(const Verb *v, FILE *f);
/* As JSON, for tests. */
int verbs_print_json(FILE *f);

int verb_run(const Request *q);
int verb_session_create(const Request *q);
int verb_session_start(const Request *q);
int verb_session_stop(const Request *q);
int verb_session_kill(const Request *q);
int verb_session_attach(const Request *q);
int verb_session_logs(const Request *q);
int verb_session_interrupt(const Request *q);
int verb_session_list(const Request *q);
int verb_session_show(const Request *q);
int verb_prompt(const Request *q);
int verb_say(const Request *q);
int verb_follow(const Request *q);
int verb_grant(const Request *q);
int verb_grants(const Request *q);
int verb_revoke(const Request *q);
int verb_receipts(const Request *q);
int verb_threads_list(const Request *q);
int verb_threads_show(const Request *q);
int verb_threads_rm(const Request *q);
int verb_monitor(const Request *q);
int verb_report(const Request *q);
int verb_reload(const Request *q);
int verb_config_check(const Request *q);
