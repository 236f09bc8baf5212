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

static RefusedHost *count(Refusals *r, const char *host, uint16_t port, usec_t now) {
        RefusedHost *h = find(r, host);

        r->total++;
        h->port = port;
        h->seen = now;
        h->count++;
        return h;
}

static bool may_be_told(const Refusals *r, const RefusedHost *h, usec_t now) {
        return !within_a_minute(h->told, now) && !within_a_minute(r->last[r->next], now);
}

static uint64_t tell(Refusals *r, RefusedHost *h, usec_t now) {
        uint64_t n = h->count;

        r->last[r->next] = now;
        r->next = (r->next + 1) % REFUSALS_A_MINUTE;
        h->told = now;
        h->count = 0;
        return n;
}

bool refusals_note(Refusals *r, const char *host, uint16_t port, usec_t now, uint64_t *ret_count) {
        RefusedHost *h = count(r, host, port, now);

        if (!may_be_told(r, h, now)) {
                r->untold_count++;
                return false;
        }
        *ret_count = tell(r, h, now);
        return true;
}

void refusals_keep(Refusals *r, const char *host, uint16_t port, usec_t now) {
        (void) count(r, host, port, now);
        r->untold_count++;
}

const RefusedHost *refusals_next(Refusals *r, usec_t now, uint64_t *ret_count) {
        RefusedHost *last = NULL;

        for (size_t i = 0; i < r->n; i++)
                if (r->hosts[i].count > 0 && may_be_told(r, &r->hosts[i], now) && (!last || r->hosts[i].seen > last->seen))
                        last = &r->hosts[i];
        if (!last)
                return NULL;
        *ret_count = tell(r, last, now);
        r->untold_count -= MIN(*ret_count, r->untold_count);
        return last;
}

void refusals_take_back(Refusals *r, const char *host, uint64_t n) {
        find(r, host)->count += n;
        r->untold_count += n;
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
