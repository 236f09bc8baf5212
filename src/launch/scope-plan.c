/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "launch/limits.h"
#include "launch/request.h"
#include "launch/scope-plan.h"
#include "shared/session-id.h"

#define UNIT_PREFIX "errand-session-"
#define UNIT_SUFFIX ".scope"

ScopePlan *scope_plan_free(ScopePlan *p) {
        if (!p)
                return NULL;
        free(p->unit);
        free(p->slice);
        free(p->description);
        return mfree(p);
}

const char *scope_unit_session(const char *unit, size_t *ret_size) {
        const char *id = startswith(unit, UNIT_PREFIX);
        size_t n = id ? session_id_span(id) : 0;

        if (n == 0 || n > SESSION_ID_MAX || !streq(id + n, UNIT_SUFFIX))
                return NULL;
        *ret_size = n;
        return id;
}

static int read_names(JsonObject *o, const char *session, ScopePlan *p, char **ret_problem) {
        const char *s;
        size_t n;

        const char *id = json_get_string(o, "unit", &s) < 0 ? NULL : scope_unit_session(s, &n);
        if (!id || strlen(session) != n || strncmp(id, session, n) != 0)
                return problem_set(ret_problem, "\"unit\" of \"scope\" is not \"" UNIT_PREFIX "%s" UNIT_SUFFIX "\"", session);
        p->unit = strdup(s);
        int r = json_get_string(o, "slice", &s);
        if (r != -ENOENT) {
                if (r < 0 || !endswith(s, ".slice") || strlen(s) > SLICE_NAME_MAX || s[0] == '-' || s[0] == '.' ||
                    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(s) - STRLEN(".slice"))
                        return problem_set(ret_problem, "\"slice\" of \"scope\" is not the name of a slice");
                p->slice = strdup(s);
        }
        bool has_slice = r >= 0;
        r = json_get_string(o, "description", &s);
        if (r < 0 || strlen(s) > DESCRIPTION_MAX || strpbrk(s, "\n\r"))
                return problem_set(ret_problem, "\"description\" of \"scope\" is not a line of at most %u bytes", DESCRIPTION_MAX);
        p->description = strdup(s);
        return p->unit && p->description && (p->slice || !has_slice) ? 0 : -ENOMEM;
}

static int read_limit(JsonObject *o, const char *name, uint64_t least, uint64_t *ret, char **ret_problem) {
        uint64_t value = SCOPE_NOT_LIMITED;

        int r = json_get_u64(o, name, INT64_MAX, &value);
        if ((r < 0 && r != -ENOENT) || value < least)
                return problem_set(ret_problem, "\"%s\" of \"scope\" is not a number from %llu on", name, (unsigned long long) least);
        *ret = value;
        return 0;
}

int scope_plan_parse(JsonObject *o, const char *session, ScopePlan **ret, char **ret_problem) {
        static const char *const known[] = {"unit", "slice", "description", "memoryMax", "memorySwapMax", "tasksMax",
                                            "cpuQuotaPerSecUSec", "delegate", NULL};
        _cleanup_(scope_plan_freep) ScopePlan *p = calloc(1, sizeof(ScopePlan));
        const char *unknown;

        if (!p)
                return -ENOMEM;
        if (!request_members_known(o, known, &unknown)) {
                _cleanup_free_ char *shown = string_escape_control(unknown);
                return problem_set(ret_problem, "\"%.64s\" is no member of \"scope\"", shown ?: "");
        }
        int r = read_names(o, session, p, ret_problem);
        if (r >= 0)
                r = read_limit(o, "memoryMax", 1, &p->memory_max, ret_problem);
        if (r >= 0)
                r = read_limit(o, "memorySwapMax", 0, &p->memory_swap_max, ret_problem);
        if (r >= 0)
                r = read_limit(o, "tasksMax", 1, &p->tasks_max, ret_problem);
        if (r >= 0)
                r = read_limit(o, "cpuQuotaPerSecUSec", 1, &p->cpu_quota_usec, ret_problem);
        if (r >= 0 && json_get_bool(o, "delegate", &p->delegate) < 0)
                r = problem_set(ret_problem, "\"delegate\" of \"scope\" is not true or false");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}
