/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/session-run.h"

/* Beyond the grace period: the shim's own SIGKILL, its last line, and a terminal's last bytes. */
#define SHIM_PATIENCE_USEC (10 * USEC_PER_SEC)
#define KILL_AGAIN_USEC (2 * USEC_PER_SEC) /* what was asked of a launcher goes with it */

int run_add_waiter(Run *run, bool for_start, Done done, void *userdata) {
        Waiter *w = calloc(1, sizeof(Waiter)), **at = &run->waiters;

        if (!w)
                return -ENOMEM;
        *w = (Waiter){.for_start = for_start, .done = done, .userdata = userdata};
        while (*at)
                at = &(*at)->next;
        *at = w;
        return 0;
}

void run_answer(Run *run, bool for_start, const Fault *fault) {
        Waiter **at = &run->waiters;

        session_tell_changed(run->session);
        while (*at) {
                Waiter *w = *at;
                if (w->for_start != for_start) {
                        at = &w->next;
                        continue;
                }
                *at = w->next;
                if (w->done)
                        w->done(run->session, fault, -EBADF, w->userdata);
                free(w);
                at = &run->waiters; /* the callback may have added some */
        }
}

/* ---- the end of a run ---- */

/* Why nothing ran, without the name of the session, which its record has. */
static char *exit_text(Run *run) {
        char before[SESSION_ID_MAX + 16];
        const char *text = run->fault.text;
        bool ours = !run->started && run->why && text;

        if (run->exited && run->why && run->why_text)
                return strdup(run->why_text);
        if ((run->exit_text && !ours) || run->started || !text)
                return TAKE_PTR(run->exit_text);
        (void) snprintf(before, sizeof(before), "session %s: ", run->session->record->id);
        return strdup(startswith(text, before) ?: text);
}

static void fold_exit(Run *run, bool lost) {
        SessionRecord *record = run->session->record;
        bool setup = run->fault.code != ERROR_NONE && !lost;
        const char *ours = run->exited ? run->why : setup ? "setup" : "lost";

        record->ended = run->exit_time ?: now_realtime();
        free(record->exit_reason);
        record->exit_reason = ours ? strdup(ours) : TAKE_PTR(run->exit_reason);
        free(record->exit_text);
        record->exit_text = exit_text(run);
        record->exit_status = run->exited && !(run->why && setup) ? run->exit_status : setup ? 125 : 137;
        record->scope_unit = mfree(record->scope_unit);
        record->broker_unit = mfree(record->broker_unit);
}

static SessionState final_state(const Run *run) {
        /* An agent that cannot be talked to ran, and could not be used. */
        if (!run->started || !run->exited || streq(run->exit_reason ?: "", "setup"))
                return SESSION_FAILED;
        return SESSION_STOPPED;
}

/* Whether it is lost: it may have run, and nothing says so. */
static bool settle_fault(Run *run) {
        if (run->started)
                return false;
        if (run->exited)
                (void) fault_set(&run->fault, ERROR_SETUP, "session %s: nothing was run: %s", run->session->record->id,
                                 run->exit_text ?: "bailey gave no reason");
        else if (run->shim_state == SHIM_GONE && run->fault.code == ERROR_NONE) {
                /* It listened, and what it did then it could not write down, on a full disk for one. */
                (void) fault_set(&run->fault, ERROR_SETUP, "session %s: its shim ended without a word; whether its command ran is not known",
                                 run->session->record->id);
                return true;
        } else
                (void) fault_set(&run->fault, ERROR_SETUP, "session %s: its shim ended before anything ran", run->session->record->id);
        return false;
}

static void run_free(Manager *m, Run *run) {
        for (size_t i = 0; i < m->n_launchers; i++)
                launch_client_forget(m->launchers[i], run); /* one may not have answered yet */
        ports_release(&m->ports, run->port);
        credentials_free(run->credentials);
        strv_free(run->allow);
        free(run->unrevoked);
        sd_event_source_disable_unref(run->events_watch);
        sd_event_source_disable_unref(run->shim_end);
        sd_event_source_disable_unref(run->shim_link.again);
        sd_event_source_disable_unref(run->deadline);
        run_drop_shim(run, NULL);
        broker_client_free(run->broker);
        safe_close(run->events);
        safe_close(run->shim_pidfd);
        free(run->exit_reason);
        free(run->exit_text);
        free(run->why_text);
        config_free(run->config);
        disk_watch_free(run->disk);
        idle_watch_free(run->idle);
        fault_done(&run->fault);
        free(run);
}

void run_leave(Session *s) {
        Run *run = s->run;
        Fault f = {};

        if (!run)
                return;
        (void) fault_set(&f, ERROR_WRONG_STATE, "errandd is ending; ask again after session %s when it is there again", s->record->id);
        s->run = NULL;
        while (run->waiters) {
                Waiter *w = run->waiters;
                run->waiters = w->next;
                if (w->done)
                        w->done(s, &f, -EBADF, w->userdata);
                free(w);
        }
        fault_done(&f);
        run_free(s->manager, run);
}

void session_sweep_sockets(Session *s) {
        Identity payload;
        Fault f = {};

        _cleanup_close_ int own = openat(s->manager->paths->state_fd, s->record->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (own >= 0)
                (void) unlinkat(own, "broker/session", 0);
        if (s->record->payload != UID_NONE && session_prepare_identity(s, &payload, &f) >= 0) {
                _cleanup_free_ char *path = NULL;
                _cleanup_close_ int directory = -EBADF;
                /* One that is served is left to who listens, a shim of before that is still stopping what it has: by it the launcher knows of it, and
                 * starts no other beside it. */
                int r = manager_shim_directory(s->manager, &payload, &directory, &path);
                int served = r < 0 ? r : channel_connect(directory, s->record->id, UID_ANY);
                if (served == -ECONNREFUSED)
                        (void) unlinkat(directory, s->record->id, 0);
                safe_close(served);
        }
        fault_done(&f);
}

/* Each answer may start, or collect, the session. */
static void answer_all(Manager *m, Session *s, Run *run) {
        _cleanup_free_ char *id = strdup(s->record->id);

        while (run->waiters) {
                Waiter *w = run->waiters;
                run->waiters = w->next;
                if (w->done && id && manager_find(m, id) == s)
                        w->done(s, w->for_start && run->fault.code != ERROR_NONE ? &run->fault : NULL, -EBADF, w->userdata);
                free(w);
        }
}

static void run_finish(Run *run) {
        Session *s = run->session;
        Manager *m = s->manager;

        run_drop_shim(run, "the session has ended");
        (void) session_ingest(s, true);
        session_sweep_sockets(s);
        /* One that failed before its launch has them still, and whoever reads their other ends waits. */
        for (size_t i = 0; i < ELEMENTSOF(s->stdio); i++)
                s->stdio[i] = safe_close(s->stdio[i]);
        bool lost = settle_fault(run);
        SessionState state = final_state(run);
        fold_exit(run, lost);
        if (!run->started && run->exited && s->record->exit_text)
                log_session_error(s->record->id, "nothing was run: %s", s->record->exit_text);
        (void) session_set_state(s, state);
        s->run = NULL;
        session_tell_changed(s);
        if (m->observer.session_exited)
                m->observer.session_exited(s, s->record->exit_reason ?: "lost", (int) s->record->exit_status, m->observer.userdata);
        answer_all(m, s, run);
        run_free(m, run);
}

/* There is one, or there may be one in a moment. */
static bool shim_awaited(const Run *run) {
        return run->shim_state == SHIM_ASKED || run->shim_state == SHIM_RUNS;
}

void run_check_finished(Run *run) {
        if (run->phase == RUN_ENDS && !run->broker && !shim_awaited(run))
                run_finish(run);
}

void run_broker_ended(Run *run, const char *how) {
        Session *s = run->session;
        _cleanup_free_ char *words = strdup(how); /* the client's */
        bool unasked = run->broker_state != BROKER_CLOSING && run->phase != RUN_ENDS, begins = run->broker_state == BROKER_BEGINS;

        run->broker = broker_client_free(run->broker);
        run->broker_state = BROKER_GONE;
        if (unasked) {
                (void) session_ingest(s, true);
                if (run->shim_state != SHIM_NONE && !begins) {
                        session_notice(s, "broker", "the session's broker ended (%s) and cannot be brought back: it has no way out any more", words ?: "");
                        session_touch(s);
                } else {
                        run->why = "setup";
                        run_fail(run, ERROR_SETUP, "the broker ended (%s) before the session began; %s may say why", words ?: "",
                                 s->record->broker_unit ? "its unit's journal" : "broker.log of its record");
                        return;
                }
        }
        run_check_finished(run);
}

/* systemctl stop of it, say: its processes end, and their shim sees that. */
void run_scope_ended(Run *run) {
        if (run->phase != RUN_GOES || run->exited)
                return;
        session_notice(run->session, "scope", "the session's scope was stopped, and so the session ends");
        Fault f = {};
        (void) session_stop(run->session, NULL, NULL, &f);
        fault_done(&f);
}

void run_stop_for(Run *run, const char *why, const char *format, ...) {
        Session *s = run->session;
        _cleanup_free_ char *text = string_format_own(format);
        Fault f = {};

        if (run->phase != RUN_GOES || run->exited)
                return;
        run->why = why;
        if (session_state(s) == SESSION_STARTING) {
                run_fail(run, ERROR_LIMIT, "%s", text ?: "out of memory");
                return;
        }
        session_notice(s, why, "%s", text ?: "the session is stopped");
        run->why_text = TAKE_PTR(text);
        (void) session_stop(s, NULL, NULL, &f);
        fault_done(&f);
}

/* By its launcher where it is another account's: that alone has said which process it is, and may have named any, errandd itself or, when errandd
 * is root, whatever there is. */
static int signal_shim(Run *run, int signal) {
        Session *s = run->session;
        LaunchClient *launcher;
        Identity payload;
        Fault f = {};

        int r = session_prepare_identity(s, &payload, &f);
        if (r >= 0 && payload.uid == geteuid())
                return pidfd_send_signal(run->shim_pidfd, signal, NULL, 0) < 0 ? -errno : 0;
        if (r >= 0)
                r = manager_launcher(s->manager, &payload, &launcher, &f);
        if (r >= 0)
                r = launch_client_kill(launcher, s->record->id, signal);
        fault_done(&f);
        return r;
}

/* It may answer yet, and what it starts then is nobody's. */
static void give_launch_up(Run *run) {
        Session *s = run->session;
        LaunchClient *launcher;
        Fault f = {};

        if (session_launcher(s, &launcher, &f) >= 0)
                (void) launch_client_stop(launcher, s->record->id);
        fault_done(&f);
        if (run->shim_state == SHIM_ASKED)
                run->shim_state = SHIM_NONE;
        run_check_finished(run);
}

static void arm_overdue(Run *run, usec_t usec);

static int on_shim_overdue(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Run *run = userdata;

        if (run->shim_pidfd < 0) {
                log_session_warning(run->session->record->id, "errand-launch does not answer and is not waited for");
                give_launch_up(run);
                return 0;
        }
        if (!run->shim_killed)
                log_session_warning(run->session->record->id, "its shim does not end and is killed");
        int r = signal_shim(run, SIGKILL);
        if (r < 0 && !run->shim_killed)
                log_session_warning_errno(r, run->session->record->id, "its shim cannot be killed yet, and that is tried again: %m");
        run->shim_killed = true;
        arm_overdue(run, KILL_AGAIN_USEC);
        return 0;
}

static void arm_overdue(Run *run, usec_t usec) {
        run->deadline = sd_event_source_disable_unref(run->deadline);
        int r = sd_event_add_time_relative(run->session->manager->event, &run->deadline, CLOCK_MONOTONIC, usec, 0, on_shim_overdue, run);
        if (r < 0)
                log_session_warning_errno(r, run->session->record->id, "no timer, so its shim is waited for without an end: %m");
}

static void ask_shim_to_stop(Run *run, usec_t grace) {
        Session *s = run->session;
        int r = run->shim ? shim_client_stop(run->shim, grace, run->why_text, NULL, NULL) : -ENOTCONN;

        run->shim_stops = true;
        if (r < 0 && run->shim_state == SHIM_RUNS && run->shim_pidfd >= 0)
                r = signal_shim(run, SIGTERM);
        if (r < 0 && run->shim_state == SHIM_RUNS)
                log_session_warning_errno(r, s->record->id, "its shim cannot be asked to stop: %m");
        arm_overdue(run, grace + SHIM_PATIENCE_USEC);
}

/* A second time shortens the time at most; the sentence for the transcript has been said, or is not worth saying twice. */
void run_repeat_stop(Run *run) {
        if (!run->shim_stops || run->shim_state != SHIM_RUNS || run->exited)
                return;
        int r = run->shim ? shim_client_stop(run->shim, run->started ? run->session->record->grace_period : 0, NULL, NULL, NULL) : -ENOTCONN;
        if (r < 0 && run->shim_pidfd >= 0)
                r = signal_shim(run, SIGTERM);
        if (r < 0)
                log_session_warning_errno(r, run->session->record->id, "its shim cannot be asked to stop: %m");
}

static void on_closed_for_end(_unused_ Message *m, _unused_ const char *problem, void *userdata) {
        Run *run = userdata;

        if (run->broker)
                broker_client_end(run->broker);
}

static void close_broker(Run *run, ChannelReply reply) {
        if (!run->broker || run->broker_state == BROKER_CLOSING)
                return;
        run->broker_state = BROKER_CLOSING;
        if (broker_client_close(run->broker, reply, run) < 0)
                reply(NULL, "it cannot be asked", run);
}

/* Nothing of it may go on: the shim, if there is one, is on its way out or is told to; then the broker goes. */
void run_end(Run *run) {
        bool first = run->phase != RUN_ENDS;

        run->phase = RUN_ENDS;
        if (run->shim_state == SHIM_RUNS && !run->exited)
                ask_shim_to_stop(run, run->started ? run->session->record->grace_period : 0);
        else if (first && shim_awaited(run))
                arm_overdue(run, SHIM_PATIENCE_USEC);
        if (run->broker && run->broker_state != BROKER_CLOSING)
                close_broker(run, on_closed_for_end);
        else if (run->broker)
                broker_client_end(run->broker);
        run_check_finished(run);
}

void run_fail(Run *run, ErrorCode code, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format);

        if (!run->exited)
                (void) fault_set(&run->fault, code, "session %s: %s", run->session->record->id, text ?: "out of memory");
        log_session_error(run->session->record->id, "%s", text ?: "out of memory");
        run_end(run);
}

/* ---- Stop ---- */

static void on_closed_for_stop(_unused_ Message *m, _unused_ const char *problem, void *userdata) {
        Run *run = userdata;

        /* Whether it answered or died: its credential is dead. Now the processes. */
        if (run->phase != RUN_ENDS)
                ask_shim_to_stop(run, run->session->record->grace_period);
}

void run_stop(Run *run) {
        run->phase = MAX(run->phase, RUN_STOPS);
        if (run->broker)
                close_broker(run, on_closed_for_stop);
        else
                on_closed_for_stop(NULL, NULL, run);
}

int session_stop(Session *s, Done done, void *userdata, Fault *f) {
        SessionState state = session_state(s);
        Run *run = s->run;

        if (!run || !session_state_live(state))
                return fault_set(f, ERROR_WRONG_STATE, "session %s is %s already", s->record->id, session_state_to_string(state));
        if (run_add_waiter(run, false, done, userdata) < 0)
                return fault_set(f, ERROR_SETUP, "out of memory");
        if (run->phase != RUN_GOES)
                return 0;
        if (state == SESSION_STARTING) {
                run_fail(run, ERROR_SETUP, "it was stopped before anything ran");
                return 0;
        }
        run_stop(run); /* first: where the disk holds up who writes to it, the way out is shut all the same */
        if (state == SESSION_RUNNING)
                (void) session_set_state(s, SESSION_STOPPING);
        return 0;
}
