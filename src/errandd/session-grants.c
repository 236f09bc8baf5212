/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/session-run.h"
#include "shared/event-id.h"

/* A grant is in the record before the broker hears of it, so that whatever dies, nothing was open that nobody knows of. */

static int write_grants(Session *s) {
        _cleanup_close_ int dir = session_open_dir(s);
        return dir < 0 ? dir : grant_list_write(dir, &s->grants);
}

static bool ended(const Grant *g, const GrantClock *now) {
        return !grant_in_force(g, now);
}

/* Drops what has ended, and tells so. */
static int prune(Session *s, const GrantClock *now) {
        const Observer *o = &s->manager->observer;
        _cleanup_free_ uint32_t *numbers = calloc(s->grants.n_grants + 1, sizeof(uint32_t));
        size_t n = 0;

        if (!numbers)
                return -ENOMEM;
        for (size_t i = 0; i < s->grants.n_grants; i++)
                if (ended(&s->grants.grants[i], now))
                        numbers[n++] = s->grants.grants[i].number;
        if (n == 0)
                return 0;
        (void) grant_list_prune(&s->grants, now);
        int r = write_grants(s);
        if (r < 0)
                log_session_warning_errno(r, s->record->id, "its grants cannot be written, ignoring: they have ended all the same: %m");
        for (size_t i = 0; i < n; i++)
                if (o->grant_removed)
                        o->grant_removed(s, numbers[i], o->userdata);
        return 0;
}

static int on_expiry(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Session *s = userdata;
        GrantClock now;

        if (grant_clock_now(&now) >= 0)
                (void) prune(s, &now);
        session_arm_expiry(s);
        return 0;
}

void session_arm_expiry(Session *s) {
        usec_t next = USEC_INFINITY;
        GrantClock now;

        s->expiry = sd_event_source_disable_unref(s->expiry);
        if (grant_clock_now(&now) < 0)
                return;
        for (size_t i = 0; i < s->grants.n_grants; i++)
                if (s->grants.grants[i].duration == GRANT_SPAN)
                        next = MIN(next, grant_remaining(&s->grants.grants[i], &now));
        if (next == USEC_INFINITY)
                return;
        int r = sd_event_add_time_relative(s->manager->event, &s->expiry, CLOCK_BOOTTIME, next, USEC_PER_MSEC, on_expiry, s);
        if (r < 0)
                log_session_warning_errno(r, s->record->id, "no timer for its grants, ignoring: the broker ends them: %m");
}

static void on_broker_answer(_unused_ Message *m, const char *problem, void *userdata) {
        if (problem)
                log_session_warning((const char *) userdata, "its broker refused a change of grants: %s", problem);
        free(userdata);
}

static void on_told_again(_unused_ Message *m, _unused_ const char *problem, void *userdata) {
        free(userdata); /* a grant that it has already is refused */
}

/* g, or NULL and the number of the one to revoke. */
static int tell_broker(Session *s, const Grant *g, uint32_t revoke, bool again) {
        Run *run = s->run;
        GrantClock now;
        int r;

        if (run && run->broker_state == BROKER_AWAY && !g)
                return -EAGAIN; /* it may come back with what it had */
        if (!run || run->broker_state != BROKER_WORKS)
                return 0; /* it gets those in force with its set-up */
        char *id = strdup(s->record->id);
        if (!id)
                return -ENOMEM;
        r = g ? grant_clock_now(&now) : 0;
        if (r >= 0)
                r = g ? broker_client_grant(run->broker, g, &now, again ? on_told_again : on_broker_answer, free, id)
                      : broker_client_revoke(run->broker, revoke, on_broker_answer, free, id);
        if (r < 0)
                free(id);
        return r;
}

int session_grants_to_broker(Session *s, bool again) {
        GrantClock now;

        int r = grant_clock_now(&now);
        if (r < 0)
                return r;
        (void) prune(s, &now);
        for (size_t i = 0; i < s->grants.n_grants && r >= 0; i++)
                if (grant_in_force(&s->grants.grants[i], &now))
                        r = tell_broker(s, &s->grants.grants[i], 0, again);
        session_arm_expiry(s);
        return r == -ETIME ? 0 : r;
}

/* what: "granted", "revoked", "used". */
static void log_grant(const Session *s, const Grant *g, const char *event, const char *what) {
        char number[16], uid[16], duration[TIMESPAN_TEXT_MAX];
        const LogContext about = {.session = s->record->id, .message_id = event, .project = s->record->project, .host = g->host, .grant = number,
                                  .duration = grant_duration_text(g, duration), .uid = uid};

        (void) snprintf(number, sizeof(number), "%u", g->number);
        (void) snprintf(uid, sizeof(uid), "%u", (unsigned) g->granted_by);
        log_with(LOG_LEVEL_INFO, &about, "%s: %s (%s), grant %u of uid %u", what, g->host, about.duration, g->number, (unsigned) g->granted_by);
}

static int check_state(Session *s, Fault *f) {
        SessionState state = session_state(s);

        if (state != SESSION_STARTING && state != SESSION_RUNNING)
                return fault_set(f, ERROR_WRONG_STATE, "session %s is %s; a host is granted to one that runs", s->record->id,
                                 session_state_to_string(state));
        if (!s->run || (s->run->port == 0 && !s->run->broker))
                return fault_set(f, ERROR_WRONG_STATE, "session %s has no network, so no host can be granted to it", s->record->id);
        if (s->run->broker_state >= BROKER_CLOSING || (state == SESSION_RUNNING && !s->run->broker))
                return fault_set(f, ERROR_WRONG_STATE, "the broker of session %s has ended; no host can be granted any more", s->record->id);
        return 0;
}

int session_grant(Session *s, const Caller *caller, const char *host, const char *duration, const Grant **ret, Fault *f) {
        const Observer *o = &s->manager->observer;
        const char *problem = NULL;
        const Grant *g;
        GrantClock now;

        int r = check_state(s, f);
        if (r < 0)
                return r;
        r = grant_clock_now(&now);
        if (r >= 0)
                r = prune(s, &now);
        if (r >= 0)
                r = grant_list_add(&s->grants, host, duration, caller->uid, &now, &g, &problem);
        if (r == -EBADMSG)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "\"%.256s\" for \"%.64s\": %s", host, duration, problem);
        if (r == -ENOSPC)
                return fault_set(f, ERROR_LIMIT, "session %s has %u grants already; revoke some", s->record->id, GRANTS_MAX);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "the host cannot be granted: %s", strerror(-r));
        uint32_t number = g->number;
        r = write_grants(s);
        if (r < 0) {
                (void) grant_list_revoke(&s->grants, number);
                return fault_set(f, ERROR_STORAGE, "the grant cannot be recorded, and so is not given: %s", strerror(-r));
        }
        r = tell_broker(s, g, 0, false);
        if (r < 0) {
                (void) grant_list_revoke(&s->grants, number);
                (void) write_grants(s);
                return fault_set(f, ERROR_SETUP, "the broker of session %s cannot be told: %s", s->record->id, strerror(-r));
        }
        log_grant(s, g, EVENT_GRANT_GIVEN, "granted");
        session_arm_expiry(s);
        if (o->grant_added)
                o->grant_added(s, g, o->userdata);
        *ret = grant_list_find(&s->grants, number);
        return 0;
}

int session_revoke(Session *s, uint32_t number, Fault *f) {
        const Observer *o = &s->manager->observer;

        const Grant *g = grant_list_find(&s->grants, number);
        if (!g)
                return fault_set(f, ERROR_NOT_FOUND, "session %s has no grant %u", s->record->id, number);
        /* Taken away first: a disk that is full must not keep a host open. */
        int r = tell_broker(s, NULL, number, false);
        if (r == -EAGAIN)
                return fault_set(f, ERROR_WRONG_STATE, "the broker of session %s crashed and is coming back; revoke again in a moment", s->record->id);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the broker of session %s cannot be told: %s", s->record->id, strerror(-r));
        log_grant(s, g, EVENT_GRANT_REVOKED, "revoked");
        (void) grant_list_revoke(&s->grants, number);
        r = write_grants(s);
        session_arm_expiry(s);
        if (o->grant_removed)
                o->grant_removed(s, number, o->userdata);
        return r < 0 ? fault_set(f, ERROR_STORAGE, "the grant is revoked, but that cannot be recorded: %s", strerror(-r)) : 0;
}

int session_grant_was_used(Session *s, uint32_t number, usec_t used) {
        const Observer *o = &s->manager->observer;

        int r = grant_list_mark_used(&s->grants, number, used);
        if (r <= 0)
                return 0; /* known already, or revoked meanwhile */
        r = write_grants(s);
        if (r < 0)
                return r;
        const Grant *g = grant_list_find(&s->grants, number);
        if (g)
                log_grant(s, g, EVENT_GRANT_USED, "used");
        if (o->grant_changed && g)
                o->grant_changed(s, g, o->userdata);
        return 0;
}
