/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/refusals.h"

static RefusedHost *find(Refusals *r, const char *host) {
        RefusedHost *oldest = &r->hosts[0];

        for (size_t i = 0; i < r->n; i++) {
                if (streq(r->hosts[i].name, host))
                        return &r->hosts[i];
                if (r->hosts[i].seen < oldest->seen)
                        oldest = &r->hosts[i];
        }
        RefusedHost *h = r->n < REFUSALS_HOSTS_MAX ? &r->hosts[r->n++] : oldest;
        *h = (RefusedHost){};
        (void) snprintf(h->name, sizeof(h->name), "%s", host);
        return h;
}

static bool within_a_minute(usec_t then, usec_t now) {
        return then != 0 && now - then < USEC_PER_MINUTE;
}

bool refusals_note(Refusals *r, const char *host, usec_t now, uint64_t *ret_count) {
        RefusedHost *h = find(r, host);

        r->total++;
        h->seen = now;
        h->count++;
        if (within_a_minute(h->told, now) || within_a_minute(r->last[r->next], now)) {
                r->untold_count++;
                return false;
        }
        r->last[r->next] = now;
        r->next = (r->next + 1) % REFUSALS_A_MINUTE;
        h->told = now;
        *ret_count = h->count;
        h->count = 0;
        return true;
}

bool refusals_summary(Refusals *r, uint64_t *ret_count, uint64_t *ret_hosts) {
        uint64_t hosts = 0;

        if (r->untold_count == 0)
                return false;
        for (size_t i = 0; i < r->n; i++)
                hosts += r->hosts[i].count > 0;
        *ret_count = r->untold_count;
        *ret_hosts = hosts;
        r->untold_count = 0;
        return true;
}
