/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a session's owner granted while it runs: hosts beyond the allowlist, once, for a time, or until the session ends. A grant
 * names a host alone; ports and addresses are judged all the same. */

#include <json-glib/json-glib.h>

#include "basic/clock.h"
#include "basic/json-writer.h"
#include "broker/hosts.h"

#define GRANT_ID_MAX 64U /* bytes: letters, digits, '-', '_', '.' */

typedef struct Grants Grants;

typedef enum GrantDuration {
        GRANT_ONCE,   /* "once": the next connection; stays until it is used */
        GRANT_ALWAYS, /* "always": for the session's life */
        GRANT_UNTIL,  /* "until": with the time it expires at */
        _GRANT_DURATION_MAX,
        _GRANT_DURATION_INVALID = -EINVAL,
} GrantDuration;

const char *grant_duration_to_string(GrantDuration d);
GrantDuration grant_duration_from_string(const char *s);

typedef struct GrantUse {
        char id[GRANT_ID_MAX + 1];
        GrantDuration duration;
        bool first; /* it was not used before */
} GrantUse;

int grants_new(Grants **ret);
Grants *grants_free(Grants *g);
DEFINE_CLEANUP(Grants *, grants_free);

/* Times are of a clock that nobody can set and that counts suspend (grants_now()); deadline matters for GRANT_UNTIL alone. -EBADMSG
 * with a static phrase for an id or a host that is none, -EEXIST for an id that is in use, -ENOSPC over GRANTS_MAX. */
int grants_add(Grants *g, const char *id, const char *host, GrantDuration duration, usec_t deadline, usec_t now,
               const char **ret_problem);

/* What is asked for; the strings are somebody else's. */
typedef struct GrantRequest {
        const char *id, *host;
        GrantDuration duration;
        usec_t deadline;
} GrantRequest;

/* Adds all of the list that g has not by their ids, or none: what it has stays as it is. Errors as of grants_add(), with the one at fault in *ret_at; -EEXIST:
 * the list has two of one id. *ret_added: how many are new. */
int grants_add_all(Grants *g, const GrantRequest *list, size_t n, usec_t now, size_t *ret_added, size_t *ret_at, const char **ret_problem);

/* -ENOENT when there is none of that id (or it was used up, or has expired). */
int grants_revoke(Grants *g, const char *id);

/* Finds the grant that covers host, without using it; longer ones are preferred, so that one for once is not spent needlessly.
 * False: none. */
bool grants_find(Grants *g, const Host *host, usec_t now, GrantUse *ret);

/* Uses the grant that was found; one for once is gone with that. All of it happens in the loop's thread, so of two connections that
 * race for one only the first finds it. */
void grants_use(Grants *g, const GrantUse *use);

/* A grant for once is about to be written down as used by a connection to host. While that is so, whoever reads what grants_save() wrote finds it
 * gone: a process that is killed meanwhile leaves a grant that was used. grants_use() ends it; so does grants_spare(), after which it is unused. */
void grants_spend(Grants *g, const GrantUse *use, const char *host);
void grants_spare(Grants *g);

/* What was being spent when the process that saved it was killed. */
typedef struct GrantSpent {
        char id[GRANT_ID_MAX + 1]; /* "": nothing */
        char host[HOST_NAME_MAX_BYTES + 1];
} GrantSpent;

/* Adds the member "grants", and "spending", to the object that is open in w; deadlines are of this boot. */
void grants_save(const Grants *g, JsonWriter *w);
/* Adds what was saved to g, judged as grants_add() judges. -EBADMSG with *ret_problem, static. */
int grants_load(Grants *g, JsonObject *saved, usec_t now, GrantSpent *ret_spent, const char **ret_problem);

size_t grants_count(const Grants *g);

/* CLOCK_BOOTTIME, and the moment in it that a realtime µs names now. A time in the past gives `now`. */
usec_t grants_now(void);
usec_t grants_deadline(usec_t realtime);
