/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/session-run.h"

int session_prepare_identity(Session *s, Identity *ret, Fault *f) {
        const Manager *m = s->manager;
        AccountReason reason;

        if (!m->mode->changes_account && s->record->payload == UID_NONE)
                s->record->payload = m->account.uid;
        if (s->record->payload != UID_NONE) {
                int r = manager_identity(m, s->record->payload, ret);
                return r < 0 ? fault_set(f, ERROR_SETUP, "uid %u, which session %s runs as, cannot be taken on: %s", s->record->payload,
                                         s->record->id, strerror(-r)) : 0;
        }
        int r = mode_decide_account(m->mode, m->paths->user, s->project, ret, &reason, f);
        if (r < 0)
                return r;
        s->record->payload = ret->uid;
        if (reason == ACCOUNT_NOBODY)
                session_notice(s, "account", "the session runs as %s (uid %u): no --account, no SUDO_UID, and the project belongs to root", ret->name,
                               ret->uid);
        return 0;
}

int session_launcher(Session *s, LaunchClient **ret, Fault *f) {
        Identity payload;

        int r = session_prepare_identity(s, &payload, f);
        return r < 0 ? r : manager_launcher(s->manager, &payload, ret, f);
}

/* The recorded path has no links in it. One that is there now was put there later, by whoever may write there: another session, say. */
int session_open_project(Session *s, Fault *f) {
        if (s->project >= 0)
                return 0;
        if (s->manager->mode->project_names)
                return manager_open_project(s->manager, s->record->project ?: "", &s->project, f);
        const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
        int fd = (int) syscall(SYS_openat2, AT_FDCWD, s->record->project, &how, sizeof(how));
        if (fd < 0 && errno == ELOOP)
                return fault_set(f, ERROR_SETUP,
                                 "the project %s of session %s is reached by a symbolic link now, which was not there when the session was made; "
                                 "make a session of the directory that is meant", s->record->project, s->record->id);
        if (fd < 0)
                return fault_set(f, ERROR_SETUP, "the project %s of session %s cannot be opened: %s", s->record->project, s->record->id, strerror(errno));
        s->project = fd;
        return 0;
}

static SessionNetwork network_of(const Session *s, const Config *config) {
        const ConfigSandbox *c = &config->sandbox;
        bool none = s->record->network ? streq(s->record->network, "none") : c->network == NETWORK_NONE;

        return none ? SESSION_NETWORK_NONE : c->egress.mode == EGRESS_OPEN ? SESSION_NETWORK_OPEN : SESSION_NETWORK_BROKER;
}

/* A configuration is read at every start, so a session would get whatever the errandd of the moment was given: one that was made under a
 * narrow file would run under the defaults, which allow every host. */
static int check_configuration(const Session *s, Fault *f) {
        const char *made = s->record->configuration, *now = s->manager->paths->config;

        if (!made || streq_ptr(made, now))
                return 0;
        return fault_set(f, ERROR_CONFIGURATION, "session %s was made with the configuration %s, and errandd runs with %s; end it and start it with "
                         "--config %s, or make a new session", s->record->id, made, now ?: "none", made);
}

static int check_start(Session *s, Fault *f) {
        const Config *c = s->manager->config;
        SessionState state = session_state(s);

        if (!session_state_may_move(state, SESSION_STARTING) || s->run || s->collecting)
                return fault_set(f, ERROR_WRONG_STATE, "session %s is %s%s; it cannot be started", s->record->id, session_state_to_string(state),
                                 s->collecting ? " and being collected" : "");
        if (s->manager->ending)
                return fault_set(f, ERROR_WRONG_STATE, "errandd is ending; nothing is started any more");
        if (manager_count_live(s->manager) >= c->limits.live_sessions)
                return fault_set(f, ERROR_LIMIT, "%llu sessions run already, as many as limits.maxLiveSessions allows; stop one",
                                 (unsigned long long) c->limits.live_sessions);
        if (s->manager->probe_problem)
                return fault_set(f, ERROR_NOT_ENFORCEABLE, "no session can be confined here: %s", s->manager->probe_problem);
        if (c->sandbox.require_full_enforcement && s->manager->report.gaps)
                return fault_set(f, ERROR_NOT_ENFORCEABLE, "sandbox.requireFullEnforcement is true, and here %s", s->manager->report.gaps[0]);
        return check_configuration(s, f);
}

int session_check_share(const Session *s, const Caller *caller, Fault *f) {
        const Manager *m = s->manager;
        uint64_t most = m->config->limits.live_sessions, share = MAX(most / 2, UINT64_C(1)), n = 0;

        if (caller->operator || session_state_live(session_state(s)))
                return 0; /* one that runs is refused for that */
        for (size_t i = 0; i < m->n_sessions; i++)
                n += m->sessions[i]->record->owner == s->record->owner && session_state_live(session_state(m->sessions[i]));
        if (n < share)
                return 0;
        return fault_set(f, ERROR_LIMIT, "%llu sessions of uid %u run, and the rest of the %llu that limits.maxLiveSessions allows is for others; stop one, or have an "
                         "operator start this one", (unsigned long long) n, s->record->owner, (unsigned long long) most);
}

/* What a shim writes last lies before its socket goes: while there is one, whatever another errandd began with that session, its end would be
 * taken for the end of this start. */
static int check_shim(Session *s, const Identity *payload, Fault *f) {
        _cleanup_close_ int directory = -EBADF;
        _cleanup_free_ char *path = NULL;

        int r = manager_shim_directory(s->manager, payload, &directory, &path);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "the directory of shims cannot be opened: %s", strerror(-r));
        _cleanup_close_ int served = channel_connect(directory, s->record->id, UID_ANY);
        if (served < 0 && served != -EAGAIN)
                return 0;
        return fault_set(f, ERROR_WRONG_STATE, "an earlier run of session %s is still being ended; try again in a moment", s->record->id);
}

Run *run_new(Session *s) {
        Run *run = calloc(1, sizeof(Run));

        if (!run)
                return NULL;
        run->session = s;
        run->config = config_ref(s->manager->config);
        run->shim_pidfd = run->events = -EBADF;
        return run;
}

static int mint(Run *run, Fault *f) {
        Session *s = run->session;
        const Config *c = run->config;

        run->network = network_of(s, c);
        int r = credentials_new(c, run->network, &run->credentials, f);
        if (r < 0 || run->network != SESSION_NETWORK_BROKER)
                return r;
        r = strv_extend_list(&run->allow, s->record->allow_given ? s->record->allow : c->sandbox.egress.allow);
        if (r >= 0)
                r = ports_take(&s->manager->ports, &run->port);
        return r < 0 ? fault_set(f, ERROR_LIMIT, "there is no port for session %s: %s", s->record->id, strerror(-r)) : 0;
}

/* Named before anything of them is there, so that an errandd that finds the record finds them too. */
static int name_units(Run *run) {
        SessionRecord *record = run->session->record;

        return run->port > 0 && run->session->manager->mode->units ? broker_unit_name(record->id, &record->broker_unit) : 0;
}

static void run_abandon(Session *s) {
        Run *run = s->run;

        s->run = NULL;
        ports_release(&s->manager->ports, run->port);
        credentials_free(run->credentials);
        strv_free(run->allow);
        while (run->waiters) {
                Waiter *w = run->waiters;
                run->waiters = w->next;
                free(w);
        }
        config_free(run->config);
        free(run);
}

static int on_startup_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Run *run = userdata;

        run_fail(run, ERROR_SETUP, "the session did not start within timeouts.startupMs");
        return 0;
}

/* Of the run before; their texts are the caller's. */
static void reset_record(SessionRecord *record) {
        record->started = record->ended = 0;
        record->exit_reason = record->exit_text = record->scope_unit = record->broker_unit = NULL;
        record->exit_status = record->broker_refused = 0;
        record->project_bytes = record->system_bytes = 0;
        record->disk_max = 0;
        record->own_stdio = record->turn = false;
}

static void free_run_texts(SessionRecord *record) {
        free(record->exit_reason);
        free(record->exit_text);
        free(record->scope_unit);
        free(record->broker_unit);
}

/* A start that is refused leaves the record as it was, and as it is on disk. */
static int note_start(Session *s, Fault *f) {
        SessionRecord *record = s->record, before = *record;

        reset_record(record);
        session_keep_limits(s, s->run->config);
        for (size_t i = 0; i < ELEMENTSOF(s->stdio); i++)
                record->own_stdio |= s->stdio[i] >= 0;
        int r = name_units(s->run);
        if (r >= 0)
                r = session_set_state(s, SESSION_STARTING);
        free_run_texts(r >= 0 ? &before : record);
        if (r >= 0)
                return 0;
        *record = before;
        return fault_set(f, ERROR_STORAGE, "the record of session %s cannot be written: %s", record->id, strerror(-r));
}

int session_start(Session *s, Done done, void *userdata, Fault *f) {
        Identity payload;

        int r = check_start(s, f);
        if (r >= 0)
                r = session_open_project(s, f);
        if (r >= 0)
                r = session_check_places(s, f);
        if (r >= 0)
                r = session_prepare_identity(s, &payload, f);
        if (r >= 0)
                r = mode_check_project(s->manager->mode, &payload, s->project, s->record->project, f);
        if (r >= 0)
                r = check_shim(s, &payload, f);
        if (r < 0)
                return r;
        s->run = run_new(s);
        if (!s->run)
                return fault_set(f, ERROR_SETUP, "out of memory");
        r = run_add_waiter(s->run, true, done, userdata);
        if (r < 0)
                (void) fault_set(f, ERROR_SETUP, "out of memory");
        else
                r = mint(s->run, f);
        if (r >= 0)
                r = note_start(s, f);
        if (r < 0) {
                run_abandon(s);
                return r;
        }
        s->settle = 0;
        manager_tick_begin(s->manager);

        /* From here on failures are the run's: they come by way of Done. */
        Fault late = {};
        r = sd_event_add_time_relative(s->manager->event, &s->run->deadline, CLOCK_MONOTONIC, s->run->config->timeouts.startup, 0,
                                       on_startup_timeout, s->run);
        if (r < 0)
                (void) fault_set(&late, ERROR_SETUP, "no timer: %s", strerror(-r));
        else
                r = s->run->port > 0 ? run_start_broker(s->run, &payload, &late) : run_launch(s->run, &payload, &late);
        if (r < 0)
                run_fail(s->run, late.code, "%s", late.text ?: "out of memory");
        fault_done(&late);
        return 0;
}
