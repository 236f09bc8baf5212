/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/manager-private.h"
#include "errandd/session-run.h"
#include "errandd/spare.h"
#include "shared/timespan.h"

#define NEXT_USEC (250 * USEC_PER_MSEC) /* after one was used: the session that has it comes first */
#define KEPT_USEC (10 * USEC_PER_SEC)   /* for a session that was made and is not started */
/* After one that crashed or could not be started, twice as long each time: the first is what systemd lets a unit have, 5 starts in 10 s, which it counts
 * for each unit alone, and every one of these is another. */
#define AGAIN_FIRST_USEC (2 * USEC_PER_SEC)
#define AGAIN_LAST_USEC (5 * 60 * USEC_PER_SEC)

typedef enum SpareState {
        SPARE_BEGINS,
        SPARE_WAITS, /* for a session */
        SPARE_GIVEN, /* a session has its id */
        SPARE_USED,  /* and its broker: the next one is waited for */
        SPARE_ENDS,
        SPARE_FAILED, /* another one later */
} SpareState;

struct Spare {
        Manager *manager;
        SpareState state;
        char id[SESSION_ID_MAX + 1];
        BrokerClient *client; /* NULL: used, or failed */
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

/* Its scope is made ahead, too, or with NULL not any more. Without that the session makes its own. */
static void prepare_scope(Manager *m, const char *id) {
        _cleanup_(fault_done) Fault f = {};
        LaunchClient *launcher;
        LaunchScope scope;
        char unit[64];

        if (manager_launcher(m, &m->account, &launcher, &f) < 0)
                return;
        if (!id)
                launch_client_prepare(launcher, NULL, NULL);
        else if (run_plan_scope(m, m->config, id, unit, &scope))
                launch_client_prepare(launcher, id, &scope);
}

static void forget(Spare *s) {
        s->manager->spare = NULL;
        spare_free(s);
}

static void on_started(void *userdata) {
        Spare *s = userdata;

        if (s->state != SPARE_BEGINS)
                return;
        s->state = SPARE_WAITS;
        prepare_scope(s->manager, s->id);
}

static int on_next(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Spare *s = userdata;
        Manager *m = s->manager;

        forget(s);
        if (!wanted(m)) /* any more */
                prepare_scope(m, NULL);
        spare_begin(m);
        return 0;
}

static int arm(Spare *s, usec_t usec, sd_event_time_handler_t handler) {
        s->timer = sd_event_source_disable_unref(s->timer);
        return sd_event_add_time_relative(s->manager->event, &s->timer, CLOCK_MONOTONIC, usec, 0, handler, s);
}

/* Nothing of it is left but the wait for the next one. */
static void fail(Spare *s, const char *what, const char *why) {
        char text[TIMESPAN_TEXT_MAX];
        Manager *m = s->manager;

        m->spare_wait = m->spare_wait == 0 ? AGAIN_FIRST_USEC : MIN(2 * m->spare_wait, AGAIN_LAST_USEC);
        log_warning("%s: %s; sessions start their own, and it is tried again in %s", what, why, timespan_format(m->spare_wait, text));
        if (s->id[0] && !manager_find(m, s->id))
                session_places_remove_empty(m, s->id);
        s->state = SPARE_FAILED;
        prepare_scope(m, NULL);
        s->client = broker_client_free(s->client);
        if (arm(s, m->spare_wait, on_next) < 0)
                forget(s);
}

static void on_ended(const char *how, void *userdata) {
        Spare *s = userdata;
        Manager *m = s->manager;

        if (s->state != SPARE_ENDS) {
                _cleanup_free_ char *words = strdup(how); /* the client's */
                fail(s, "the broker that was started ahead ended", words ?: "out of memory");
                return;
        }
        if (!manager_find(m, s->id))
                session_places_remove_empty(m, s->id);
        forget(s);
        spare_begin(m);
}

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
                                 &(BrokerHandler){.started = on_started, .ended = on_ended, .userdata = s}, &s->client, f);
}

void spare_begin(Manager *m) {
        Fault f = {};

        if (m->spare || !wanted(m))
                return;
        Spare *s = calloc(1, sizeof(Spare));
        if (!s)
                return;
        *s = (Spare){.manager = m};
        m->spare = s;
        if (start(s, &f) < 0)
                fail(s, "no broker can be started ahead", f.text ?: "out of memory");
        fault_done(&f);
}

static int on_kept_long(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Spare *s = userdata;

        spare_drop(s->manager, s->id);
        return 0;
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
        m->spare_wait = 0;
        broker_client_hand_over(client, handler);
        if (arm(s, NEXT_USEC, on_next) < 0)
                forget(s);
        return client;
}

void spare_renew(Manager *m) {
        m->spare_wait = 0;
        if (m->spare && m->spare->state == SPARE_FAILED)
                forget(m->spare);
        if (m->spare)
                spare_drop(m, NULL);
        else
                spare_begin(m);
}

void spare_drop(Manager *m, const char *id) {
        Spare *s = m->spare;

        if (!s || !s->client || s->state == SPARE_ENDS || (id && !streq(s->id, id)))
                return;
        s->state = SPARE_ENDS;
        prepare_scope(m, NULL);
        s->timer = sd_event_source_disable_unref(s->timer);
        broker_client_end(s->client);
}
