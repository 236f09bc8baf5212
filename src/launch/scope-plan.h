/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The "scope" of a launch request: which unit is made around a session, and what it may use. */

#include <json-glib/json-glib.h>

#include "basic/clock.h"

#define SCOPE_NOT_LIMITED UINT64_MAX

typedef struct ScopePlan {
        char *unit;          /* "errand-session-ID.scope" of the session's own id */
        char *slice;         /* NULL: where the manager puts it */
        char *description;
        bool delegate;
        uint64_t memory_max; /* bytes; SCOPE_NOT_LIMITED here and below */
        uint64_t memory_swap_max;
        uint64_t tasks_max;
        usec_t cpu_quota_usec; /* of CPU time in a second; more than a second is more than one CPU */
} ScopePlan;

/* -EBADMSG with *ret_problem, a sentence (to free). */
int scope_plan_parse(JsonObject *o, const char *session, ScopePlan **ret, char **ret_problem);
ScopePlan *scope_plan_free(ScopePlan *p);
DEFINE_CLEANUP(ScopePlan *, scope_plan_free);

/* The id of the session whose scope that is, 1 to SESSION_ID_MAX bytes at the returned place of `unit`; NULL: no session's. */
const char *scope_unit_session(const char *unit, size_t *ret_size);
