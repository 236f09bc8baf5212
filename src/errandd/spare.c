/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/manager-private.h"
#include "errandd/spare.h"

#define NEXT_USEC (250 * USEC_PER_MSEC) /* after one was used: the session that has it comes first */
#define KEPT_USEC (10 * USEC_PER_SEC)   /* for a session that was made and is not started */

typedef enum SpareState {
        SPARE_BEGINS,
        SPARE_WAITS, /* for a session */
        SPARE_GIVEN, /* a session has its id */
        SPARE_USED,  /* and its broker: the next one is waited for */
        SPARE_ENDS,
} SpareState;

struct Spare {
        Manager *manager;
        SpareState state;
        char id[SESSION_ID_MAX + 1];
        BrokerClient *client; /* NULL: used */
        sd_event_source *timer;
};

static bool wanted(const Manager *m) {
        const ConfigSandbox *c = &m->config->sandbox;

        return m->mode->units && m->config->limits.brokers_ahead > 0 && !m->probe_problem && c->network != NETWORK_NONE && c->egress.mode != EGRESS_OPEN;
}

Spare *spare_free(Spare *s) {
        if (!s)
                return NULL;
        broker_client_free(s->client);
        sd_event_source_disable_unref(s->timer);
        return mfree(s);
}

static void forget(Spare *s) {
        s->manager->spare = NULL;
        spare_free(s);
}

static void on_started(void *userdata) {
        Spare *s = userdata;

        if (s->state == SPARE_BEGINS)
                s->state = SPARE_WAITS;
}

static void on_ended(const char *how, void *userdata) {
        Spare *s = userdata;
        Manager *m = s->manager;
        bool again = s->state == SPARE_ENDS;

        if (!again)
                log_warning("the broker that was started ahead ended (%s); sessions start their own", how);
        if (!manager_find(m, s->id))
                session_places_remove_empty(m, s->id);
        forget(s);
        if (again)
                spare_begin(m);
}

/* What only a broker that was set up does. */
static void on_away(_unused_ void *userdata) {}
static void on_back(_unused_ uint16_t port, _unused_ uint64_t fresh, _unused_ void *userdata) {}
static void on_refused(_unused_ const char *host, _unused_ uint16_t port, _unused_ uint64_t count, _unused_ uint64_t fresh, _unused_ void *userdata) {}
static void on_denied_summary(_unused_ uint64_t count, _unused_ uint64_t hosts, _unused_ uint64_t fresh, _unused_ void *userdata) {}
static void on_grant_used(_unused_ uint32_t number, _unused_ void *userdata) {}
static void on_receipt_failed(_unused_ void *userdata) {}

static int start(Spare *s, Fault *f) {
        Manager *m = s->manager;

        int r = record_mint_id(s->id);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "no id: %s", strerror(-r));
        _cleanup_close_ int own = mode_open_own(m->mode, m->paths->state_fd, s->id, &m->account),
                            directory = own < 0 ? own : mode_open_broker(m->mode, own, &m->account);
        if (directory < 0)
                return fault_set(f, ERROR_STORAGE, "its directory cannot be made: %s", strerror(-directory));
        return broker_client_new(m->event, NULL, &(BrokerUnit){.units = m->units, .directory = m->broker_sockets, .session = s->id}, s->id, 0,
                                 &(BrokerHandler){.started = on_started, .away = on_away, .back = on_back, .refused = on_refused,
                                                  .denied_summary = on_denied_summary, .grant_used = on_grant_used,
                                                  .receipt_failed = on_receipt_failed, .ended = on_ended, .userdata = s}, &s->client, f);
}

void spare_begin(Manager *m) {
        Fault f = {};

        if (m->spare || !wanted(m))
                return;
        Spare *s = calloc(1, sizeof(Spare));
        if (!s)
                return;
        *s = (Spare){.manager = m};
        int r = start(s, &f);
        if (r >= 0) {
                m->spare = s;
                return;
        }
        log_warning("no broker can be started ahead: %s; sessions start their own", f.text ?: "out of memory");
        if (s->id[0])
                session_places_remove_empty(m, s->id);
        fault_done(&f);
        spare_free(s);
}

static int on_next(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Spare *s = userdata;
        Manager *m = s->manager;

        forget(s);
        spare_begin(m);
        return 0;
}

static int on_kept_long(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Spare *s = userdata;

        spare_drop(s->manager, s->id);
        return 0;
}

static int arm(Spare *s, usec_t usec, sd_event_time_handler_t handler) {
        s->timer = sd_event_source_disable_unref(s->timer);
        return sd_event_add_time_relative(s->manager->event, &s->timer, CLOCK_MONOTONIC, usec, 0, handler, s);
}

bool spare_take_id(Manager *m, char ret[static SESSION_ID_MAX + 1]) {
        Spare *s = m->spare;

        if (!s || s->state != SPARE_WAITS || arm(s, KEPT_USEC, on_kept_long) < 0)
                return false;
        s->state = SPARE_GIVEN;
        strcpy(ret, s->id);
        return true;
}

BrokerClient *spare_take_broker(Manager *m, const char *id, const BrokerHandler *handler) {
        Spare *s = m->spare;

        if (!s || s->state != SPARE_GIVEN || !streq(s->id, id) || !broker_client_waits(s->client))
                return NULL;
        BrokerClient *client = TAKE_PTR(s->client);
        s->state = SPARE_USED; /* another start of that session finds none */
        broker_client_hand_over(client, handler);
        if (arm(s, NEXT_USEC, on_next) < 0)
                forget(s);
        return client;
}

void spare_drop(Manager *m, const char *id) {
        Spare *s = m->spare;

        if (!s || !s->client || s->state == SPARE_ENDS || (id && !streq(s->id, id)))
                return;
        s->state = SPARE_ENDS;
        s->timer = sd_event_source_disable_unref(s->timer);
        broker_client_end(s->client);
}
