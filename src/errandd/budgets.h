/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a session may spend, and what it has spent in all its runs so far: its receipts are the count, so that starting it again does not begin anew. */

#include "errandd/config-providers.h"
#include "errandd/store.h"

typedef struct SessionBudgets {
        ConfigBudgets limits;   /* over all providers */
        StoredSpending total;   /* its provider is NULL */
        StoredSpending *providers;
        size_t n_providers;
} SessionBudgets;

/* Whether a limit is set, here or for one of the providers. */
bool config_has_budgets(const ConfigBudgets *all, const ConfigProvider *providers, size_t n_providers);

/* The errors are those of store.h. The receipts must have been taken from the spool before. */
int session_budgets_read(Store *store, const char *session, SessionBudgets *ret);
void session_budgets_done(SessionBudgets *b);
#define _cleanup_budgets_ _cleanup_(session_budgets_done)

/* All zero for a provider that was not called. */
const StoredSpending *session_budgets_of(const SessionBudgets *b, const char *provider);
