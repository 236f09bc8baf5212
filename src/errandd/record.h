/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What session.json says of a session: everything that a restarted errandd must know, and never a secret. */

#include "basic/clock.h"
#include "errandd/record-dir.h"
#include "errandd/session-state.h"

#define UID_NONE ((uid_t) -1)
#define PROJECT_NOT_MEASURED UINT64_C(999999999999999999) /* too large for it */

typedef struct SessionRecord {
        char *id;
        int state;           /* SessionState, never collected */
        uid_t owner;
        uid_t payload;       /* the account its processes run as; UID_NONE before it is decided */
        char *project;       /* a name below projectRoot, or a directory's path in user and embedded mode; NULL: none */
        char *backend;
        char **command;
        char *network;       /* NULL: as configured */
        bool allow_given;    /* allow narrows the configured list, to no host when it is empty */
        char **allow;
        char **env;          /* KEY=VALUE of CreateSession; a value reaches the agent, so it is no secret */
        bool interactive;
        char *protocol;      /* "acp": it is talked to; NULL: its streams are its own */
        char *provider, *model;
        char *configuration; /* the file that counted when it was made; NULL: none did, so the defaults were in force */
        usec_t created, started, ended; /* realtime; 0 = not yet */
        char *exit_reason;   /* "exited", "killed", "memory", "lost", …; NULL: did not run */
        char *exit_text;     /* a sentence for people: why nothing ran; NULL: there is nothing to say */
        uint64_t exit_status; /* as a shell tells it: the code, or 128 + signal */
        uint64_t refused;    /* connections that were refused */
        uint64_t broker_refused; /* of these, what the broker of this run told */
        char *scope_unit, *broker_unit; /* of a live session, where there are units */
        bool turn;           /* its agent was given one, which is not known to be over; of a live session */
        bool own_stdio;      /* its output goes where its caller said, and not through the shim */
        /* What it was started with, and keeps when the configuration is read again; sizes in bytes, times in usec. disk_max is never 0 then, but in a record
         * from before these were kept. */
        uint64_t disk_max, disk_check, idle_limit, grace_period;
        uint64_t system_bytes;  /* what the project's file system had in use then, plus 1; 0: not known */
        uint64_t project_bytes; /* what the project took when the session was started, plus 1; 0: not known; or PROJECT_NOT_MEASURED */
        uint64_t events_length, transcript_length; /* as seen last: record_watch_length() */
} SessionRecord;

SessionRecord *session_record_free(SessionRecord *s);
DEFINE_CLEANUP(SessionRecord *, session_record_free);

/* A created session of that id and owner; every other field is for the caller to fill with memory of its own. */
int session_record_new(const char *id, uid_t owner, SessionRecord **ret);

int session_record_format(const SessionRecord *s, char **ret, size_t *ret_size);
/* With *ret_problem, a sentence (to free): -EBADMSG, not JSON, an unknown, missing or mistyped member, another id than `id`; -EPROTONOSUPPORT, of a
 * version that is not known here. */
int session_record_parse(const char *id, const char *text, size_t size, SessionRecord **ret, char **ret_problem);

/* Whoever reads finds it from then on; it is on disk after session_record_settle(). */
int session_record_write(int dir, const SessionRecord *s);
/* In another thread: it sleeps. */
int session_record_settle(int root, const char *id);
/* *ret_ahead is for record_settle_found(). As session_record_parse(), and -EBADMSG also when there is no such file, or none of ours; -EIO with *ret_problem when it cannot be read at the moment. */
int session_record_read(int dir, const char *id, SessionRecord **ret, size_t *ret_ahead, char **ret_problem);

/* All records, by id, after a start: what is ahead of one is put in its place. One that is damaged has a problem instead of a record, and the rest loads. */
typedef struct RecordEntry {
        char *id; /* the directory's name, which may be no session's id when there is a problem */
        SessionRecord *record;
        char *problem;
        bool damaged; /* its directory is a record's, and no errandd will read what is in it */
} RecordEntry;

int record_list(int root, RecordEntry **ret, size_t *ret_n);
void record_list_free(RecordEntry *entries, size_t n);
