/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/budgets.h"

static bool any(const ConfigBudgets *b) {
        return b->requests > 0 || b->bytes > 0 || b->tokens > 0;
}

bool config_has_budgets(const ConfigBudgets *all, const ConfigProvider *providers, size_t n_providers) {
        for (size_t i = 0; i < n_providers; i++)
                if (config_provider_brokered(&providers[i]) && any(&providers[i].budgets))
                        return true;
        return any(all);
}

int session_budgets_read(Store *store, const char *session, SessionBudgets *ret) {
        SessionBudgets b = {};

        int r = store_sum_spending(store, session, &b.providers, &b.n_providers);
        if (r < 0)
                return r;
        for (size_t i = 0; i < b.n_providers; i++) {
                b.total.requests += b.providers[i].requests;
                b.total.bytes += b.providers[i].bytes;
                b.total.tokens += b.providers[i].tokens;
        }
        b.limits = ret->limits;
        *ret = b;
        return 0;
}

void session_budgets_done(SessionBudgets *b) {
        stored_spending_free(b->providers, b->n_providers);
        *b = (SessionBudgets){};
}

const StoredSpending *session_budgets_of(const SessionBudgets *b, const char *provider) {
        static const StoredSpending none = {};

        for (size_t i = 0; i < b->n_providers; i++)
                if (streq(b->providers[i].provider, provider))
                        return &b->providers[i];
        return &none;
}
