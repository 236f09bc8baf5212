/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A session that outlived the errandd that started it. Its record says what it was in; shim, events and broker say what it is: nothing else is asked.
 * The shim is whoever listens in its place as the payload's account; without one, the last line of the events is all there will ever be. */

#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"
#include "errandd/session-run.h"

static void find_shim(Run *run) {
        Session *s = run->session;

        int r = run_reach_shim(run);
        int pidfd = r < 0 ? r : shim_client_open_pidfd(run->shim);
        if (pidfd >= 0)
                r = run_watch_shim(run, pidfd);
        run->shim_pid = pidfd >= 0 ? shim_client_pid(run->shim) : -1;
        if (r >= 0 && pidfd >= 0) {
                run_converse(run);
                return;
        }
        run_drop_shim(run, NULL);
        run->shim_state = SHIM_GONE;
        if (r == -EPERM)
                session_notice(s, "tampering", "another account's process listens in place of the session's shim, and is not asked");
        else
                log_session_info(s->record->id, "it has no shim any more");
}

/* What is half made is undone: whoever asked for it is not there to be told. */
static void settle_start(Run *run) {
        run_take_lines(run); /* the command may run by now: then it is no start any more */
        if (run->started)
                return;
        run->session->undone = true;
        run->why = "setup"; /* whatever a shim wrote that was killed along with it */
        run_fail(run, ERROR_SETUP, "errandd ended while the session was started");
}

static void watch(Run *run) {
        int r = disk_watch_new(run, &run->disk);
        disk_watch_begin(run->disk);
        if (r >= 0 && !run->idle) /* its own "started" began it, of one that has come to run only now */
                r = idle_watch_new(run, &run->idle);
        if (r < 0)
                log_session_warning_errno(r, run->session->record->id, "its disk use, or whether anything happens in it, is not watched any more: %m");
}

int session_adopt(Session *s) {
        SessionState state = session_state(s);
        Fault f = {};

        Run *run = run_new(s);
        if (!run)
                return -ENOMEM;
        s->run = run;
        run->found = true;
        s->settle = 0;
        session_keep_limits(s, run->config);
        run->shim_state = SHIM_RUNS;
        run->started = state != SESSION_STARTING;
        int r = run_watch_events(run);
        if (r < 0 && r != -ENOENT) /* it had not come that far */
                log_session_warning_errno(r, s->record->id, "its events cannot be followed: %m");
        find_shim(run);
        if (s->record->broker_unit && run_adopt_broker(run, &f) < 0)
                log_session_error(s->record->id, "its broker cannot be found: %s", f.text ?: "out of memory");
        fault_done(&f);
        log_session_info(s->record->id, "found again, %s", session_state_to_string(state));
        if (state == SESSION_STARTING)
                settle_start(run);
        else if (state == SESSION_STOPPING && run->shim_state == SHIM_RUNS)
                run_stop(run);
        if (s->run && session_state(s) == SESSION_RUNNING && run->shim_state == SHIM_RUNS)
                watch(run);
        if (s->run && run->phase != RUN_ENDS)
                run_read_events(run);
        return 0;
}
