/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/budget.h"

const char *budget_kind_to_string(BudgetKind k) {
        static const char *const words[_BUDGET_KIND_MAX] = {
                [BUDGET_REQUESTS] = "requests", [BUDGET_BYTES] = "bytes", [BUDGET_TOKENS] = "tokens",
        };
        return k >= 0 && k < _BUDGET_KIND_MAX ? words[k] : NULL;
}

BudgetKind budget_find_spent(const Budget *b) {
        for (BudgetKind k = 0; b && k < _BUDGET_KIND_MAX; k++)
                if (b->limit[k] > 0 && b->spent[k] >= b->limit[k])
                        return k;
        return _BUDGET_KIND_INVALID;
}

void budget_spend(Budget *b, BudgetKind k, uint64_t n) {
        if (b)
                b->spent[k] = n > UINT64_MAX - b->spent[k] ? UINT64_MAX : b->spent[k] + n;
}

char *budget_refusal(const Budget *b, BudgetKind k, const char *provider) {
        char *text;

        if (asprintf(&text, "this session has spent its budget of %llu %s%s%s; an administrator can raise %s%s%sbudgets.%s in errand.json, which counts from a "
                     "session's next start",
                     (unsigned long long) b->limit[k], budget_kind_to_string(k), provider ? " for provider " : "", provider ?: "",
                     provider ? "agent.providers." : "", provider ?: "", provider ? "." : "", budget_kind_to_string(k)) < 0)
                return NULL;
        return text;
}
