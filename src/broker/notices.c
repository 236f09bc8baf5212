/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "broker/grants.h"
#include "broker/limits.h"
#include "broker/notices.h"
#include "shared/event-timer.h"
#include "shared/message.h"

typedef struct GrantUsed {
        char id[GRANT_ID_MAX + 1];
        char host[HOST_NAME_MAX_BYTES + 1];
        usec_t used; /* realtime */
} GrantUsed;

struct Notices {
        sd_event *event; /* borrowed */
        int fd;          /* borrowed; -EBADF: nobody is there */
        Refusals refusals;
        sd_event_source *summary;
        GrantUsed *uses; /* untold */
        size_t n_uses;
        bool receipt_failed; /* untold */
};

int notices_new(sd_event *event, Notices **ret) {
        Notices *n = calloc(1, sizeof(Notices));
        if (!n)
                return -ENOMEM;
        n->event = event;
        n->fd = -EBADF;
        *ret = n;
        return 0;
}

Notices *notices_free(Notices *n) {
        if (!n)
                return NULL;
        sd_event_source_disable_unref(n->summary);
        free(n->uses);
        return mfree(n);
}

static bool tell(Notices *n, JsonWriter *w) {
        if (n->fd < 0)
                return false;
        int r = message_send(n->fd, w, NULL, 0);
        if (r < 0)
                log_debug("control: an event waits: %s", strerror(-r));
        return r >= 0;
}

static bool tell_refused(Notices *n, const char *host, uint16_t port, uint64_t count) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        message_open(&w, "refused");
        json_add_string(&w, "host", host);
        json_add_u64(&w, "port", port);
        json_add_u64(&w, "count", count);
        json_add_u64(&w, "total", n->refusals.total);
        return tell(n, &w);
}

static bool tell_grant_used(Notices *n, const GrantUsed *u) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        message_open(&w, "grant-used");
        json_add_string(&w, "id", u->id);
        json_add_string(&w, "host", u->host);
        json_add_u64(&w, "used", u->used);
        return tell(n, &w);
}

static bool tell_receipt_failed(Notices *n) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        message_open(&w, "receipt-failed");
        return tell(n, &w);
}

void notices_sum_up(Notices *n) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        uint64_t count = 0, hosts = 0;

        if (n->fd < 0 || !refusals_summary(&n->refusals, &count, &hosts))
                return;
        message_open(&w, "denied-summary");
        json_add_u64(&w, "count", count);
        json_add_u64(&w, "hosts", hosts);
        json_add_u64(&w, "total", n->refusals.total);
        if (!tell(n, &w))
                n->refusals.untold_count += count;
}

static int on_summary(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        notices_sum_up(userdata);
        return 0;
}

static void arm_summary(Notices *n) {
        int enabled = SD_EVENT_OFF;

        if (!n->summary) {
                (void) sd_event_add_time_relative(n->event, &n->summary, CLOCK_MONOTONIC, USEC_PER_MINUTE, USEC_PER_SEC, on_summary, n);
                return;
        }
        if (sd_event_source_get_enabled(n->summary, &enabled) >= 0 && enabled != SD_EVENT_OFF)
                return;
        (void) timer_again(n->summary, USEC_PER_MINUTE);
}

static void keep_use(Notices *n, const GrantUsed *u) {
        GrantUsed *uses = n->n_uses < GRANTS_MAX ? reallocarray(n->uses, n->n_uses + 1, sizeof(GrantUsed)) : NULL;

        if (!uses) {
                log_warning("control: nobody is there to be told that grant %s was used, and too much waits already", u->id);
                return;
        }
        n->uses = uses;
        n->uses[n->n_uses++] = *u;
}

void notices_attach(Notices *n, int fd) {
        const RefusedHost *h;
        uint64_t count = 0;
        size_t told = 0;

        n->fd = fd;
        while (told < n->n_uses && tell_grant_used(n, &n->uses[told]))
                told++;
        n->n_uses -= told;
        if (n->n_uses > 0)
                memmove(n->uses, n->uses + told, n->n_uses * sizeof(GrantUsed));
        else
                n->uses = mfree(n->uses);
        if (n->receipt_failed)
                n->receipt_failed = !tell_receipt_failed(n);
        while ((h = refusals_next(&n->refusals, now_monotonic(), &count)))
                if (!tell_refused(n, h->name, h->port, count)) {
                        refusals_take_back(&n->refusals, h->name, count);
                        break;
                }
        notices_sum_up(n);
        if (n->refusals.untold_count > 0)
                arm_summary(n);
}

void notices_detach(Notices *n) {
        n->fd = -EBADF;
}

void notices_refused(Notices *n, const char *host, uint16_t port) {
        uint64_t count = 0;

        if (n->fd < 0)
                refusals_keep(&n->refusals, host, port, now_monotonic());
        else if (!refusals_note(&n->refusals, host, port, now_monotonic(), &count))
                arm_summary(n);
        else if (!tell_refused(n, host, port, count)) {
                refusals_take_back(&n->refusals, host, count);
                arm_summary(n);
        }
}

void notices_grant_used(Notices *n, const char *id, const char *host, bool in_spool) {
        GrantUsed u = {.used = now_realtime()};

        (void) snprintf(u.id, sizeof(u.id), "%s", id);
        (void) snprintf(u.host, sizeof(u.host), "%s", host);
        if (!tell_grant_used(n, &u) && !in_spool)
                keep_use(n, &u);
}

void notices_receipt_failed(Notices *n) {
        n->receipt_failed = !tell_receipt_failed(n);
}

uint64_t notices_refused_total(const Notices *n) {
        return n->refusals.total;
}

void notices_set_refused_total(Notices *n, uint64_t total) {
        n->refusals.total = total;
}
