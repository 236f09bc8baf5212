/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The "scope" of a launch request: which unit is made around a session, and what it may use. */

#include <json-glib/json-glib.h>

#include "basic/clock.h"

#define SCOPE_NOT_LIMITED UINT64_MAX

typedef enum ScopeLimit {
        SCOPE_MEMORY_MAX,      /* bytes, as is the next */
        SCOPE_MEMORY_SWAP_MAX,
        SCOPE_TASKS_MAX,
        SCOPE_CPU_QUOTA,       /* microseconds of CPU time in a second; more than a second is more than one CPU */
        _SCOPE_LIMIT_MAX,
        _SCOPE_LIMIT_INVALID = -EINVAL,
} ScopeLimit;

typedef struct ScopeLimitName {
        const char *name;     /* in messages */
        const char *property; /* of the unit */
        const char *file;     /* of its group */
        uint64_t least;
} ScopeLimitName;

const ScopeLimitName *scope_limit_name(ScopeLimit limit);

typedef struct ScopePlan {
        char *unit;          /* "errand-session-ID.scope" of the session's own id */
        char *slice;         /* NULL: where the manager puts it */
        char *description;
        bool delegate;
        uint64_t limits[_SCOPE_LIMIT_MAX]; /* SCOPE_NOT_LIMITED: none */
        bool required[_SCOPE_LIMIT_MAX];   /* nothing runs when the kernel does not hold it */
} ScopePlan;

/* -EBADMSG with *ret_problem, a sentence (to free). */
int scope_plan_parse(JsonObject *o, const char *session, ScopePlan **ret, char **ret_problem);
ScopePlan *scope_plan_free(ScopePlan *p);
int scope_plan_copy(const ScopePlan *p, ScopePlan **ret);
bool scope_plan_equal(const ScopePlan *a, const ScopePlan *b);
DEFINE_CLEANUP(ScopePlan *, scope_plan_free);

/* The id of the session whose scope that is, 1 to SESSION_ID_MAX bytes at the returned place of `unit`; NULL: no session's. */
const char *scope_unit_session(const char *unit, size_t *ret_size);
