/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/disk-work.h"
#include "errandd/session-run.h"
#include "shared/event-id.h"

/* A grant is on disk before the broker hears of it, so that whatever dies, nothing was open that nobody knows of. */

static bool ended(const Grant *g, const GrantClock *now) {
        return !grant_in_force(g, now) && !g->use_pending;
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
        session_write_grants_along(s); /* they have ended all the same */
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

/* A change that the broker has not answered. */
typedef struct Telling {
        Manager *manager;
        char id[SESSION_ID_MAX + 1];
        uint32_t revoke; /* that grant; 0: some are given */
} Telling;

/* It is told again when there is another connection, before any grant; a broker that could be told neither then nor now is none. */
static void keep_revocation(Session *s, uint32_t number) {
        Run *run = s->run;

        if (!run || !run->broker || run->broker_state >= BROKER_CLOSING)
                return;
        uint32_t *longer = reallocarray(run->unrevoked, run->n_unrevoked + 1, sizeof(uint32_t));
        if (!longer) {
                broker_client_end(run->broker);
                return;
        }
        run->unrevoked = longer;
        longer[run->n_unrevoked++] = number;
}

static void on_broker_answer(Message *m, const char *problem, void *userdata) {
        _cleanup_free_ Telling *t = userdata;
        Session *s = m ? NULL : manager_find(t->manager, t->id);

        if (s && t->revoke > 0)
                keep_revocation(s, t->revoke);
        else if (m && problem && t->revoke == 0) /* what it had not any more is revoked as well */
                log_session_warning(t->id, "its broker refused a change of grants: %s", problem);
}

/* A grant, or all that are in force, or, both NULL, the number of the one to revoke. */
typedef struct Change {
        const Grant *grant;
        const GrantList *all;
        uint32_t revoke;
} Change;

static int send_change(Run *run, const Change *c, Telling *t) {
        GrantClock now;

        if (!c->grant && !c->all)
                return broker_client_revoke(run->broker, c->revoke, on_broker_answer, free, t);
        int r = grant_clock_now(&now);
        if (r < 0)
                return r;
        return c->grant ? broker_client_grant(run->broker, c->grant, &now, on_broker_answer, free, t)
                        : broker_client_grants(run->broker, c->all, &now, on_broker_answer, free, t);
}

static int tell_broker(Session *s, const Change *c) {
        Run *run = s->run;

        if (run && run->broker_state == BROKER_AWAY && c->revoke > 0)
                return -EAGAIN; /* it may come back with what it had */
        if (!run || (run->broker_state != BROKER_WORKS && !(run->broker_state == BROKER_BEGINS && run->broker_told)))
                return 0; /* it gets those in force behind its set-up */
        Telling *t = malloc(sizeof(Telling));
        if (!t)
                return -ENOMEM;
        *t = (Telling){.manager = s->manager, .revoke = c->revoke};
        (void) snprintf(t->id, sizeof(t->id), "%s", s->record->id);
        int r = send_change(run, c, t);
        if (r < 0)
                free(t);
        return r;
}

static int revoke_again(Session *s) {
        Run *run = s->run;
        int r = 0;

        while (run && run->n_unrevoked > 0 && r >= 0) {
                r = tell_broker(s, &(Change){.revoke = run->unrevoked[run->n_unrevoked - 1]});
                if (r >= 0)
                        run->n_unrevoked--;
        }
        if (r < 0 && r != -ENOTCONN && r != -EPIPE && r != -ECONNRESET) /* else the next connection tells it */
                broker_client_end(run->broker);
        return r;
}

int session_grants_to_broker(Session *s) {
        GrantClock now;

        int r = grant_clock_now(&now);
        if (r >= 0)
                r = revoke_again(s);
        if (r < 0)
                return r;
        (void) prune(s, &now);
        r = tell_broker(s, &(Change){.all = &s->grants});
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

typedef struct Giving {
        uint32_t number;
        GrantDone done;
        void *userdata;
} Giving;

static void answer(const Giving *g, Session *s, const Grant *grant, Fault *f) {
        if (g->done)
                g->done(s, grant, f->code != ERROR_NONE ? f : NULL, g->userdata);
        fault_done(f);
}

/* It is on disk, or never will be. */
static int give(Session *s, Grant *g, int error, Fault *f) {
        const Observer *o = &s->manager->observer;

        if (error < 0)
                return fault_set(f, ERROR_STORAGE, "the grant cannot be recorded, and so is not given: %s", strerror(-error));
        int r = tell_broker(s, &(Change){.grant = g}); /* where the session has ended meanwhile, its next start does */
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the broker of session %s cannot be told: %s", s->record->id, strerror(-r));
        g->pending = false;
        log_grant(s, g, EVENT_GRANT_GIVEN, "granted");
        session_arm_expiry(s);
        if (o->grant_added)
                o->grant_added(s, g, o->userdata);
        return 0;
}

static void on_taken_back(Manager *m, const char *id, int error, void *userdata) {
        _cleanup_free_ Giving *giving = userdata;
        Session *s = manager_find(m, id);
        Fault f = {};

        (void) fault_set(&f, ERROR_SETUP, "the broker of session %s cannot be told, and so the host is not granted%s", id,
                         error < 0 ? "; that cannot be recorded yet, and would count when errandd were started again before it is" : "");
        if (s && error < 0)
                session_write_grants_along(s);
        answer(giving, s, NULL, &f);
}

/* It is on disk, and not given: told when it is there no more. */
static int take_back(Session *s, Giving *giving, Fault *f) {
        int r = session_write_grants(s, on_taken_back, giving);

        if (r >= 0)
                fault_done(f);
        else
                session_write_grants_along(s);
        return r;
}

static void on_grant_written(Manager *m, const char *id, int error, void *userdata) {
        Giving *giving = userdata;
        Session *s = manager_find(m, id);
        Grant *g = s ? (Grant *) grant_list_find(&s->grants, giving->number) : NULL;
        Fault f = {};

        if (!g)
                (void) fault_set(&f, ERROR_WRONG_STATE, "the grant was taken back, or has ended, before it was on disk");
        else if (give(s, g, error, &f) < 0) {
                (void) grant_list_revoke(&s->grants, giving->number);
                g = NULL;
                if (error >= 0 && take_back(s, giving, &f) >= 0)
                        return;
        }
        answer(giving, s, g, &f);
        free(giving);
}

int session_grant(Session *s, const Caller *caller, const char *host, const char *duration, GrantDone done, void *userdata, Fault *f) {
        const char *problem = NULL;
        const Grant *g;
        GrantClock now;

        int r = check_state(s, f);
        if (r < 0)
                return r;
        Giving *giving = malloc(sizeof(Giving));
        r = giving ? grant_clock_now(&now) : -ENOMEM;
        if (r >= 0)
                r = prune(s, &now);
        if (r >= 0)
                r = grant_list_add(&s->grants, host, duration, caller->uid, &now, &g, &problem);
        if (r >= 0) {
                *giving = (Giving){.number = g->number, .done = done, .userdata = userdata};
                ((Grant *) grant_list_find(&s->grants, giving->number))->pending = true;
                uint32_t number = g->number;
                r = session_write_grants(s, on_grant_written, giving);
                if (r >= 0)
                        return 0;
                (void) grant_list_revoke(&s->grants, number);
        }
        free(giving);
        if (r == -EBADMSG)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "\"%.256s\" for \"%.64s\": %s", host, duration, problem);
        if (r == -ENOSPC)
                return fault_set(f, ERROR_LIMIT, "session %s has %u grants already; revoke some", s->record->id, GRANTS_MAX);
        return fault_set(f, ERROR_STORAGE, "the host cannot be granted: %s", strerror(-r));
}

typedef struct Revoking {
        Done done;
        void *userdata;
} Revoking;

static void on_revoke_written(Manager *m, const char *id, int error, void *userdata) {
        _cleanup_free_ Revoking *revoking = userdata;
        Session *s = manager_find(m, id);
        Fault f = {};

        if (error < 0) {
                (void) fault_set(&f, ERROR_STORAGE, "the grant is revoked, but that cannot be recorded yet: %s; it is tried on, and the grant would count when errandd "
                                 "were started again before it is", strerror(-error));
                if (s)
                        session_write_grants_along(s);
        }
        if (revoking->done)
                revoking->done(s, error < 0 ? &f : NULL, -EBADF, revoking->userdata);
        fault_done(&f);
}

int session_revoke(Session *s, uint32_t number, Done done, void *userdata, Fault *f) {
        const Observer *o = &s->manager->observer;

        const Grant *g = grant_list_find(&s->grants, number);
        if (!g)
                return fault_set(f, ERROR_NOT_FOUND, "session %s has no grant %u", s->record->id, number);
        Revoking *revoking = malloc(sizeof(Revoking));
        if (!revoking)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        *revoking = (Revoking){.done = done, .userdata = userdata};
        /* Taken away first: a disk that is full, or slow, must not keep a host open. */
        int r = g->pending ? 0 : tell_broker(s, &(Change){.revoke = number});
        if (r < 0)
                free(revoking);
        if (r == -EAGAIN)
                return fault_set(f, ERROR_WRONG_STATE, "the broker of session %s crashed and is coming back; revoke again in a moment", s->record->id);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the broker of session %s cannot be told: %s", s->record->id, strerror(-r));
        log_grant(s, g, EVENT_GRANT_REVOKED, "revoked");
        (void) grant_list_revoke(&s->grants, number);
        session_arm_expiry(s);
        if (o->grant_removed)
                o->grant_removed(s, number, o->userdata);
        r = session_write_grants(s, on_revoke_written, revoking);
        if (r >= 0)
                return 0;
        free(revoking);
        session_write_grants_along(s);
        return fault_set(f, ERROR_STORAGE, "the grant is revoked, but that cannot be recorded yet: %s", strerror(-r));
}

static void on_use_written(Manager *m, const char *id, int error, void *userdata) {
        Session *s = manager_find(m, id);
        Grant *g = s ? (Grant *) grant_list_find(&s->grants, (uint32_t) (uintptr_t) userdata) : NULL;

        if (error < 0)
                log_session_warning_errno(error, id, "the use of a grant cannot be written yet; the spool has it: %m");
        if (!g)
                return;
        g->use_pending = error < 0;
        g->use_writing = false;
}

static int write_use(Session *s, uint32_t number) {
        return session_write_grants(s, on_use_written, (void *) (uintptr_t) number);
}

int session_grant_was_used(Session *s, uint32_t number, usec_t used) {
        const Observer *o = &s->manager->observer;

        int r = grant_list_mark_used(&s->grants, number, used);
        Grant *g = r < 0 ? NULL : (Grant *) grant_list_find(&s->grants, number);
        if (!g)
                return 0; /* revoked meanwhile */
        if (r == 0 && !g->use_pending)
                return 0;
        if (g->use_writing) /* asked again each second, and the disk may take minutes */
                return -EINPROGRESS;
        if (r > 0) {
                g->use_pending = true;
                log_grant(s, g, EVENT_GRANT_USED, "used");
                if (o->grant_changed)
                        o->grant_changed(s, g, o->userdata);
        }
        g->use_writing = true; /* it may be told at once that it cannot be written */
        r = write_use(s, number);
        if (r < 0)
                g->use_writing = false;
        return r < 0 ? r : -EINPROGRESS;
}
