/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The grants of one session, as durable data (grants.json in its record): hosts, times and account ids, never a credential. What is
 * granted is decided elsewhere; the broker matches hosts. A grant names a host alone: no port, no path. */

#include "basic/clock.h"
#include "errandd/host-text.h"
#include "shared/timespan.h"

#define GRANT_LIST_NAME "grants.json" /* in a record */
#define GRANTS_MAX 1024U /* as many as a broker holds */
#define GRANT_SPAN_MAX (30 * USEC_PER_DAY)
#define GRANT_SPAN_MIN USEC_PER_SEC
#define GRANT_NUMBER_MAX UINT32_MAX
#define BOOT_ID_SIZE 36U

typedef enum GrantDuration {
        GRANT_ONCE,   /* for the next connection, whenever that is */
        GRANT_SPAN,   /* until a time */
        GRANT_ALWAYS, /* as long as the session's record */
        _GRANT_DURATION_MAX,
        _GRANT_DURATION_INVALID = -EINVAL,
} GrantDuration;

/* Now, on both clocks. A grant ends by the one that counts suspend and that nobody can set, as long as the machine runs; after a boot by
 * the calendar, and at once if the calendar was turned back behind the grant's beginning. */
typedef struct GrantClock {
        usec_t realtime, boottime;
        char boot_id[BOOT_ID_SIZE + 1];
} GrantClock;

int grant_clock_now(GrantClock *ret);

typedef struct Grant {
        uint32_t number;  /* of the object /org/errand1/grant/SESSION/NUMBER; never used again in this session */
        char host[HOST_TEXT_MAX + 1]; /* normalized: a name, an address or *.name */
        GrantDuration duration;
        usec_t span;      /* SPAN */
        GrantClock granted;
        uid_t granted_by;
        usec_t used;      /* ONCE: realtime of its use, 0 = not used */
        bool pending;     /* not on disk yet, and so not given */
        bool use_pending; /* that it was used is not on disk yet */
        bool use_writing; /* and is on its way there */
} Grant;

typedef struct GrantList {
        Grant *grants; /* by number */
        size_t n_grants;
        uint32_t last; /* number that was given; they begin at 1 */
} GrantList;

void grant_list_done(GrantList *l);

/* "once", "always" or a time span of 1 second to 30 days. -EBADMSG with a static phrase. */
int grant_duration_parse(const char *s, GrantDuration *ret, usec_t *ret_span, const char **ret_problem);

/* "once", "always" or the span, as it is read. */
const char *grant_duration_text(const Grant *g, char buffer[static TIMESPAN_TEXT_MAX]);

/* Adds one; *ret stays valid until the list changes. -EBADMSG with a static phrase ("the host has an empty label" …); -ENOSPC: there are
 * GRANTS_MAX of them that count. Grants that ended make room first. */
int grant_list_add(GrantList *l, const char *host, const char *duration, uid_t by, const GrantClock *now, const Grant **ret,
                   const char **ret_problem);

const Grant *grant_list_find(const GrantList *l, uint32_t number);
int grant_list_revoke(GrantList *l, uint32_t number); /* -ENOENT */

/* By the broker's word, which may come twice. 1: marked now, 0: was marked, -ENOENT: no such grant for once. */
int grant_list_mark_used(GrantList *l, uint32_t number, usec_t realtime);

/* Drops those that ended, but for one whose use is not on disk. Returns how many. */
size_t grant_list_prune(GrantList *l, const GrantClock *now);

/* Whether it counts now. */
bool grant_in_force(const Grant *g, const GrantClock *now);
/* How long it still counts: 0 = not any more, USEC_INFINITY for once and always. */
usec_t grant_remaining(const Grant *g, const GrantClock *now);
/* On the calendar, for people: 0 for once and always. */
usec_t grant_expires(const Grant *g);

int grant_list_format(const GrantList *l, char **ret, size_t *ret_size);
/* Strict, as everything in a record. -EBADMSG with *ret_problem, a phrase to free ("has a grant …"). */
int grant_list_parse(const char *text, size_t size, GrantList *ret, char **ret_problem);

/* GRANT_LIST_NAME of a record's directory; none there is an empty list. */
int grant_list_read(int dir, GrantList *ret, char **ret_problem);
