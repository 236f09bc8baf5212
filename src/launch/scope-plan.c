/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "launch/limits.h"
#include "launch/request.h"
#include "launch/scope-plan.h"
#include "shared/session-id.h"

#define UNIT_PREFIX "errand-session-"
#define UNIT_SUFFIX ".scope"

static const ScopeLimitName limit_table[_SCOPE_LIMIT_MAX] = {
        [SCOPE_MEMORY_MAX] = {"memoryMax", "MemoryMax", "memory.max", 1},
        [SCOPE_MEMORY_SWAP_MAX] = {"memorySwapMax", "MemorySwapMax", "memory.swap.max", 0},
        [SCOPE_TASKS_MAX] = {"tasksMax", "TasksMax", "pids.max", 1},
        [SCOPE_CPU_QUOTA] = {"cpuQuotaPerSecUSec", "CPUQuotaPerSecUSec", "cpu.max", 1},
};

const ScopeLimitName *scope_limit_name(ScopeLimit limit) {
        return &limit_table[limit];
}

ScopePlan *scope_plan_free(ScopePlan *p) {
        if (!p)
                return NULL;
        free(p->unit);
        free(p->slice);
        free(p->description);
        return mfree(p);
}

int scope_plan_copy(const ScopePlan *p, ScopePlan **ret) {
        ScopePlan *copy = p ? malloc(sizeof(ScopePlan)) : NULL;

        if (!copy)
                return -ENOMEM;
        *copy = *p;
        copy->unit = strdup(p->unit);
        copy->slice = p->slice ? strdup(p->slice) : NULL;
        copy->description = strdup(p->description);
        if (!copy->unit || !copy->description || (p->slice && !copy->slice)) {
                scope_plan_free(copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

bool scope_plan_equal(const ScopePlan *a, const ScopePlan *b) {
        return streq(a->unit, b->unit) && streq_ptr(a->slice, b->slice) && streq(a->description, b->description) && a->delegate == b->delegate &&
               memcmp(a->limits, b->limits, sizeof(a->limits)) == 0 && memcmp(a->required, b->required, sizeof(a->required)) == 0;
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

static int read_limits(JsonObject *o, ScopePlan *p, char **ret_problem) {
        _cleanup_strv_free_ char **required = NULL;
        size_t n_required = 0;

        int r = json_get_strv(o, "required", &required);
        if (r < 0 && r != -ENOENT)
                return problem_set(ret_problem, "\"required\" of \"scope\" is not a list of its limits");
        for (ScopeLimit i = 0; i < _SCOPE_LIMIT_MAX; i++) {
                const ScopeLimitName *n = scope_limit_name(i);
                p->limits[i] = SCOPE_NOT_LIMITED;
                r = json_get_u64(o, n->name, INT64_MAX, &p->limits[i]);
                if ((r < 0 && r != -ENOENT) || p->limits[i] < n->least)
                        return problem_set(ret_problem, "\"%s\" of \"scope\" is not a number from %llu on", n->name,
                                           (unsigned long long) n->least);
                p->required[i] = r >= 0 && strv_contains(required, n->name);
                n_required += p->required[i];
        }
        if (n_required != strv_length(required))
                return problem_set(ret_problem, "\"required\" of \"scope\" names what is no limit that it has, or one twice");
        return 0;
}

int scope_plan_parse(JsonObject *o, const char *session, ScopePlan **ret, char **ret_problem) {
        static const char *const known[] = {"unit", "slice", "description", "memoryMax", "memorySwapMax", "tasksMax",
                                            "cpuQuotaPerSecUSec", "required", "delegate", NULL};
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
                r = read_limits(o, p, ret_problem);
        if (r >= 0 && json_get_bool(o, "delegate", &p->delegate) < 0)
                r = problem_set(ret_problem, "\"delegate\" of \"scope\" is not true or false");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}
