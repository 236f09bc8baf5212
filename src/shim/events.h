/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The session's events: one JSON object a line, appended to a file that errandd opened. The last line of a run is "exited", synced:
 *
 *   {"event":"started","time":µs,"pid":N,"gaps":["sysfs"],"landlock":N,"isolated":true,"enforced":["own root",…]}
 *   {"event":"log","time":µs,"text":"not enforced: …"}
 *   {"event":"exited","time":µs,"reason":"exited","status":N,"text":null,"survivors":N,"enforced":[…]}
 */

#include "basic/macro.h"

typedef enum ExitReason {
        EXIT_REASON_EXITED, /* by itself */
        EXIT_REASON_SIGNAL, /* a signal ended it */
        EXIT_REASON_KILLED, /* it was ended from outside: by a stop that it did not heed, or with its supervisor */
        EXIT_REASON_SETUP,  /* nothing ran */
        _EXIT_REASON_MAX,
        _EXIT_REASON_INVALID = -EINVAL,
} ExitReason;

const char *exit_reason_to_string(ExitReason reason);

typedef struct ExitStatus {
        ExitReason reason;
        unsigned status;  /* as a shell tells it: the code, or 128 + signal */
        char *text;       /* a sentence, or NULL */
        unsigned survivors;
        char **enforced;  /* bailey's words, NULL when it said nothing */
} ExitStatus;

void exit_status_done(ExitStatus *s);

typedef struct Started {
        uint64_t pid;     /* the sandbox's first process */
        char **gaps;
        uint64_t landlock; /* ABI; 0: none */
        bool isolated, brokered;
} Started;

typedef struct Events Events;

/* Takes fd. Sets room for the last line aside, where the file system can. -ENOSPC: there is none, and what runs could not be told of. */
int events_new(int fd, Events **ret);
Events *events_free(Events *e);
DEFINE_CLEANUP(Events *, events_free);

/* A line that cannot be written is told once in the log; the session goes on. */
void events_started(Events *e, const Started *s);
void events_log(Events *e, const char *text);
/* 0 only when the line is on disk. */
int events_exited(Events *e, const ExitStatus *s);
