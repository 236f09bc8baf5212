/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much a session may spend on its provider calls, over all of them and for one provider. Judged when a call begins: one that is under way is
 * not cut. Pure. */

#include "basic/macro.h"

typedef enum BudgetKind {
        BUDGET_REQUESTS, /* calls that were passed on */
        BUDGET_BYTES,    /* of their bodies, both ways */
        BUDGET_TOKENS,   /* that their answers named */
        _BUDGET_KIND_MAX,
        _BUDGET_KIND_INVALID = -EINVAL,
} BudgetKind;

const char *budget_kind_to_string(BudgetKind k); /* "requests", "bytes", "tokens" */

typedef struct Budget {
        uint64_t limit[_BUDGET_KIND_MAX]; /* 0 = none */
        uint64_t spent[_BUDGET_KIND_MAX];
} Budget;

/* The first kind of which nothing is left, or _BUDGET_KIND_INVALID. b may be NULL: no budget. */
BudgetKind budget_find_spent(const Budget *b);

/* b may be NULL. What would pass the largest number stays at it. */
void budget_spend(Budget *b, BudgetKind k, uint64_t n);

/* The sentence for a call that is refused; provider is NULL for the session's budget over all. To free; NULL when out of memory. */
char *budget_refusal(const Budget *b, BudgetKind k, const char *provider);
