/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/egress-notice.h"
#include "errandd/session-run.h"
#include "errandd/spare.h"
#include "shared/event-id.h"

/* A session's broker: started and set up, or found again, and listened to. */

static void count_refused(Run *run, uint64_t fresh) {
        Session *s = run->session;

        s->record->refused += fresh;
        s->record->broker_refused += fresh;
        (void) session_save(s);
        session_touch(s);
}

static void on_refused(const char *host, uint16_t port, uint64_t count, uint64_t fresh, void *userdata) {
        Session *s = ((Run *) userdata)->session;
        const Observer *o = &s->manager->observer;
        _cleanup_free_ char *text = egress_notice(host);

        count_refused(userdata, fresh);
        if (o->session_refused)
                o->session_refused(s, host, port, count, o->userdata);
        if (text)
                session_notice_host(s, "egress", host, "%s", text);
}

static void on_denied_summary(uint64_t count, uint64_t hosts, uint64_t fresh, void *userdata) {
        Session *s = ((Run *) userdata)->session;

        count_refused(userdata, fresh);
        session_notice(s, "denied-summary", "%llu further connections to %llu hosts were refused in the last minute", (unsigned long long) count,
                       (unsigned long long) hosts);
}

static void on_grant_used(uint32_t number, void *userdata) {
        Session *s = ((Run *) userdata)->session;

        int r = session_grant_was_used(s, number, now_realtime());
        if (r < 0 && r != -EINPROGRESS)
                log_session_warning_errno(r, s->record->id, "the use of grant %u cannot be recorded yet; the spool has it: %m", number);
}

static void on_receipt_failed(void *userdata) {
        session_notice(((Run *) userdata)->session, "receipts", "the broker cannot write receipts; calls go on without them");
}

static void on_ended(const char *how, void *userdata) {
        run_broker_ended(userdata, how);
}

/* One that is closed stays so, whatever it says. */
static void broker_becomes(Run *run, BrokerState state) {
        if (run->broker_state < BROKER_CLOSING)
                run->broker_state = state;
}

static void on_away(void *userdata) {
        Run *run = userdata;

        broker_becomes(run, BROKER_AWAY);
        log_with(LOG_LEVEL_WARNING, &(LogContext){.session = run->session->record->id, .message_id = EVENT_BROKER_CRASHED}, "its broker crashed, and is waited for");
}

/* What was used once is known from the spool before any grant is told again. */
static void on_back(uint16_t port, uint64_t fresh, void *userdata) {
        Run *run = userdata;
        Session *s = run->session;

        if (run->port == 0 && port > 0 && ports_reserve(&s->manager->ports, port) >= 0)
                run->port = port;
        (void) session_ingest(s, false);
        if (fresh > 0)
                count_refused(run, fresh);
        broker_becomes(run, BROKER_WORKS);
        int r = session_grants_to_broker(s);
        if (r < 0)
                log_session_warning_errno(r, s->record->id, "its broker cannot be told its grants: %m");
        log_with(LOG_LEVEL_INFO, &(LogContext){.session = s->record->id, .message_id = EVENT_BROKER_BACK}, "its broker does its work");
}

static void on_setup(_unused_ Message *m, const char *problem, void *userdata) {
        Run *run = userdata;

        if (run->phase == RUN_ENDS)
                return;
        if (problem) {
                run->why = "setup";
                run_fail(run, ERROR_SETUP, "the broker refused its set-up: %s", problem);
                return;
        }
        broker_becomes(run, BROKER_WORKS);
}

/* Counted anew at each start: what was spent is what the receipts say, and without them nobody could say. */
static int read_budgets(const Run *run, SessionBudgets *ret, Fault *f) {
        const Config *c = run->config;
        Session *s = run->session;

        ret->limits = c->budgets;
        if (!config_has_budgets(&c->budgets, c->agent.providers, c->agent.n_providers))
                return 0;
        int r = session_ingest(s, false);
        if (r >= 0)
                r = session_budgets_read(s->manager->store, s->record->id, ret);
        return r < 0 ? fault_set(f, ERROR_STORAGE, "what session %s has spent of its budgets cannot be read from receipts.db: %s", s->record->id,
                                 store_error_text(s->manager->store) ?: strerror(-r)) : 0;
}

/* The grants are right behind the set-up: once that is done the broker lets the command run, which may ask for such a host at once. */
static int set_up(Run *run, Fault *f) {
        Session *s = run->session;
        const ConfigSandbox *c = &run->config->sandbox;
        _cleanup_budgets_ SessionBudgets budgets = {};

        int r = read_budgets(run, &budgets, f);
        if (r < 0)
                return r;

        _cleanup_close_ int dir = session_open_dir(s), spool = dir < 0 ? dir : record_open_spool(dir);
        if (spool < 0)
                return fault_set(f, ERROR_STORAGE, "the spool of session %s cannot be opened: %s", s->record->id, strerror(-spool));
        r = broker_client_setup(run->broker, &(BrokerSetup){
                .session = s->record->id,
                .credentials = run->credentials,
                .allow = run->allow,
                .allow_internal_any = c->egress.allow_internal && !c->egress.internal_list,
                .allow_internal = c->egress.internal_list,
                .ports = c->ports,
                .n_ports = c->n_ports,
                .enforce_server_name = c->egress.server_name == SERVER_NAME_ENFORCE,
                .budgets = &budgets,
                .spool = spool,
        }, on_setup, run, f);
        if (r < 0)
                return r;
        run->broker_told = true;
        r = session_grants_to_broker(s);
        return r < 0 ? fault_set(f, ERROR_SETUP, "the broker cannot be told the grants: %s", strerror(-r)) : 0;
}

/* The launch first, since what it sets going takes longest: bailey runs nothing before the broker has said that it is ready, which it is when it was set up. */
static int launch_and_set_up(Run *run, const Identity *payload, Fault *f) {
        int r = run_launch(run, payload, f);
        if (r >= 0)
                r = set_up(run, f);
        if (r >= 0) /* broker and shim have theirs now */
                run->credentials = credentials_free(run->credentials);
        return r;
}

static void on_started(void *userdata) {
        Run *run = userdata;
        Identity payload;
        Fault f = {};

        if (run->phase == RUN_ENDS)
                return;
        int r = session_prepare_identity(run->session, &payload, &f);
        if (r >= 0)
                r = launch_and_set_up(run, &payload, &f);
        if (r < 0)
                run_fail(run, f.code, "%s", f.text ?: "out of memory");
        fault_done(&f);
}

static BrokerHandler handler_of(Run *run) {
        return (BrokerHandler){.started = on_started, .away = on_away, .back = on_back, .refused = on_refused, .denied_summary = on_denied_summary,
                               .grant_used = on_grant_used, .receipt_failed = on_receipt_failed, .ended = on_ended, .userdata = run};
}

static int connect_client(Run *run, const BrokerSpawn *spawn, const BrokerUnit *unit, Fault *f) {
        Session *s = run->session;
        const BrokerHandler mine = handler_of(run);

        int r = broker_client_new(s->manager->event, spawn, unit, s->record->id, s->record->broker_refused, &mine, &run->broker, f);
        if (r >= 0)
                run->broker_state = unit && unit->running ? BROKER_AWAY : BROKER_BEGINS;
        return r;
}

static int start_unit(Run *run, bool running, Fault *f) {
        Manager *m = run->session->manager;

        return connect_client(run, NULL, &(BrokerUnit){.units = m->units, .directory = m->broker_sockets, .session = run->session->record->id, .running = running}, f);
}

/* With a uid of its own where errandd can give it one. */
static int start_child(Run *run, int directory, const Identity *payload, Fault *f) {
        Session *s = run->session;
        bool other = s->manager->mode->changes_account;

        _cleanup_close_ int dir = session_open_dir(s), log = dir < 0 ? dir : record_open_append(dir, "broker.log");
        if (log < 0)
                return fault_set(f, ERROR_STORAGE, "broker.log of session %s cannot be opened: %s", s->record->id, strerror(-log));
        if (other) {
                uid_t taken[256];
                int r = account_unused(taken, manager_broker_uids(s->manager, taken, ELEMENTSOF(taken)), &run->broker_identity);
                if (r < 0)
                        return fault_set(f, ERROR_SETUP, "there is no unused uid for the broker of session %s: %s", s->record->id, strerror(-r));
        }
        return connect_client(run, &(BrokerSpawn){
                .directory = directory,
                .payload = other ? payload : NULL,
                .identity = other ? &run->broker_identity : NULL,
                .log = log,
        }, NULL, f);
}

/* The directory is there before the socket in it. */
int run_start_broker(Run *run, const Identity *payload, Fault *f) {
        Session *s = run->session;
        const Mode *mode = s->manager->mode;

        _cleanup_close_ int own = mode_open_own(mode, s->manager->paths->state_fd, s->record->id, payload),
                            directory = own < 0 ? own : mode_open_broker(mode, own, payload);
        if (directory < 0)
                return fault_set(f, ERROR_STORAGE, "the places of session %s cannot be made: %s", s->record->id, strerror(-directory));
        const BrokerHandler mine = handler_of(run);
        run->broker = mode->units ? spare_take_broker(s->manager, s->record->id, &mine) : NULL;
        if (run->broker) {
                run->broker_state = BROKER_BEGINS;
                return launch_and_set_up(run, payload, f);
        }
        return mode->units ? start_unit(run, false, f) : start_child(run, directory, payload, f);
}

int run_adopt_broker(Run *run, Fault *f) {
        return start_unit(run, true, f);
}
