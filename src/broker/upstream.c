/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/upstream.h"

typedef struct Kept {
        Upstream *upstream;
        Stream *stream;
        usec_t until;
} Kept;

struct Upstream {
        sd_event *event; /* borrowed: the broker's */
        TlsPeer *peer;   /* NULL = plain http */
        Kept *kept[UPSTREAM_KEPT_MAX]; /* the last used at the end */
        size_t n_kept;
        sd_event_source *timer; /* of all; NULL before the first */
        usec_t armed;           /* when it fires; USEC_INFINITY = not */
};

static void kept_remove(Kept *k) {
        Upstream *u = k->upstream;

        for (size_t i = 0; i < u->n_kept; i++)
                if (u->kept[i] == k) {
                        memmove(&u->kept[i], &u->kept[i + 1], (u->n_kept - i - 1) * sizeof(Kept *));
                        u->n_kept--;
                        break;
                }
        stream_close(k->stream);
        free(k);
}

static void on_kept_io(uint32_t events, void *userdata) {
        Kept *k = userdata;
        char byte;

        /* A TLS ticket is no answer, and an event may be about what was read before it was kept; anything else, end of file included, makes it useless. */
        if (!(events & (EPOLLHUP | EPOLLERR)) && stream_read(k->stream, &byte, 1) == -EAGAIN)
                return;
        kept_remove(k);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

/* So that it fires at `when` at the latest. What is kept anew for each call does not touch it: it is found out when it fires. */
static int arm(Upstream *u, usec_t when) {
        int r;

        if (u->armed <= when)
                return 0;
        if (!u->timer)
                r = sd_event_add_time(u->event, &u->timer, CLOCK_MONOTONIC, when, USEC_PER_SEC, on_timer, u);
        else {
                r = sd_event_source_set_time(u->timer, when);
                if (r >= 0)
                        r = sd_event_source_set_enabled(u->timer, SD_EVENT_ONESHOT);
        }
        if (r >= 0)
                u->armed = when;
        return r;
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        usec_t now = now_monotonic(), next = USEC_INFINITY;
        Upstream *u = userdata;

        u->armed = USEC_INFINITY;
        for (size_t i = u->n_kept; i-- > 0;)
                if (u->kept[i]->until <= now)
                        kept_remove(u->kept[i]);
                else
                        next = MIN(next, u->kept[i]->until);
        if (next < USEC_INFINITY && arm(u, next) < 0)
                while (u->n_kept > 0)
                        kept_remove(u->kept[0]);
        return 0;
}

int upstream_get(Broker *b, const Provider *provider, Upstream **ret) {
        Provider *p = &b->setup->providers[provider - b->setup->providers];

        if (!p->tls_credentials) {
                Upstream *u = calloc(1, sizeof(Upstream));
                if (!u)
                        return -ENOMEM;
                u->event = b->event;
                u->armed = USEC_INFINITY;
                if (p->tls) {
                        int r = tls_peer_new(p->host.name, p->host.kind != HOST_NAME, p->ca_pem, p->ca_pem_size, &u->peer);
                        if (r < 0) {
                                free(u);
                                return r;
                        }
                }
                p->tls_credentials = u;
        }
        *ret = p->tls_credentials;
        return 0;
}

int upstream_open(Upstream *u, int fd, Stream **ret) {
        return stream_new(fd, u->peer, ret);
}

Stream *upstream_take(Upstream *u) {
        while (u->n_kept > 0) {
                Kept *k = u->kept[u->n_kept - 1];
                char byte;
                /* The end may have come in this very turn of the loop. */
                bool alive = now_monotonic() < k->until && stream_read(k->stream, &byte, 1) == -EAGAIN;
                Stream *s = alive ? TAKE_PTR(k->stream) : NULL;
                kept_remove(k);
                if (s)
                        return s;
        }
        return NULL;
}

void upstream_keep(Upstream *u, Stream *s, usec_t idle) {
        _cleanup_(stream_freep) Stream *stream = s;

        stream_remember(stream);
        idle = MIN(idle, UPSTREAM_IDLE_USEC);
        if (idle == 0) {
                stream = stream_close(stream);
                return;
        }
        if (u->n_kept == UPSTREAM_KEPT_MAX)
                kept_remove(u->kept[0]);
        Kept *k = calloc(1, sizeof(Kept));
        if (!k)
                return;
        *k = (Kept) {.upstream = u, .until = now_monotonic() + idle};
        if (stream_watch(stream, u->event, UPSTREAM_EVENTS, on_kept_io, k) >= 0 && arm(u, k->until) >= 0) {
                k->stream = TAKE_PTR(stream);
                u->kept[u->n_kept++] = k;
                return;
        }
        free(k);
}

void upstreams_free(Setup *s) {
        for (size_t i = 0; s && i < s->n_providers; i++) {
                Upstream *u = s->providers[i].tls_credentials;
                if (!u)
                        continue;
                while (u->n_kept > 0)
                        kept_remove(u->kept[u->n_kept - 1]);
                sd_event_source_disable_unref(u->timer);
                u->peer = tls_peer_free(u->peer);
                free(u);
                s->providers[i].tls_credentials = NULL;
        }
}
