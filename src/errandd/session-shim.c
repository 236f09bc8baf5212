/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A run's shim as it is reached: its process, which is watched, and errandd's connection to it. The connection may break while the process lives, by a fault
 * of either side or by the shim's doing: it is the payload's account's. It is made anew then, at once and next time after a pause, which grows, so that one
 * that breaks it on and on costs little. Until it is there nothing is told that is not known: what the shim goes on with, it tells then (conversation.h). */

#include <poll.h>
#include <sys/epoll.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/session-run.h"

#define PAUSE_FIRST_USEC (100 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (30 * USEC_PER_SEC)
#define PAUSE_SAID_USEC USEC_PER_SEC /* one that is just ending is away for less */
#define CALM_USEC (60 * USEC_PER_SEC) /* a connection that held for so long broke by a chance */

static int on_shim_end(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        Run *run = userdata;

        run->shim_end = sd_event_source_disable_unref(run->shim_end);
        run->shim_link.again = sd_event_source_disable_unref(run->shim_link.again);
        run->shim_state = SHIM_GONE;
        run_drop_shim(run, "the session has ended");
        run_read_events(run); /* what it wrote last, which may end the run */
        return 0;
}

int run_watch_shim(Run *run, int pidfd) {
        run->shim_pidfd = pidfd;
        int r = sd_event_add_io(run->session->manager->event, &run->shim_end, pidfd, EPOLLIN, on_shim_end, run);
        /* Its last line is read before its end is noticed. */
        return r < 0 ? r : sd_event_source_set_priority(run->shim_end, SD_EVENT_PRIORITY_IDLE);
}

static void on_gone(void *userdata);

int run_reach_shim(Run *run) {
        Session *s = run->session;
        _cleanup_close_ int directory = -EBADF;
        _cleanup_free_ char *path = NULL;
        Identity payload;
        Fault f = {};

        int r = session_prepare_identity(s, &payload, &f);
        fault_done(&f);
        if (r >= 0)
                r = manager_shim_directory(s->manager, &payload, &directory, &path);
        if (r >= 0)
                r = shim_client_new(s->manager->event, directory, s->record->id, payload.uid, on_gone, run, &run->shim);
        if (r >= 0)
                run->shim_link.since = now_monotonic();
        return r;
}

/* Whoever listens there now has to be the process that is watched. */
static int reach_again(Run *run) {
        ShimLink *l = &run->shim_link;

        int r = run_reach_shim(run);
        if (r >= 0 && shim_client_pid(run->shim) != run->shim_pid) {
                run->shim = shim_client_free(run->shim);
                r = -EPERM;
        }
        if (r == -EPERM && !l->strange)
                session_notice(run->session, "tampering", "another process listens in place of the session's shim, and is not asked");
        l->strange |= r == -EPERM;
        return r;
}

/* None: it is the first that there is. */
static void log_break(Run *run) {
        uint64_t n = run->shim_link.breaks;

        if (log_is_due(n))
                log_session_warning(run->session->record->id, "errandd's connection to its shim broke, %llu times so far, and was made anew", (unsigned long long) n);
}

static void take_up(Run *run) {
        log_break(run);
        if (!run->conversation)
                run_converse(run);
        else if (conversation_attach(run->conversation, run->shim) < 0)
                shim_client_break(run->shim);
        run_repeat_stop(run);
}

/* It lives, as far as is known: its connections end a moment before it does, and its last line is there before. */
static bool awaited(const Run *run) {
        struct pollfd p = {.fd = run->shim_pidfd, .events = POLLIN};

        return run->shim_state == SHIM_RUNS && run->shim_end && !run->exited && poll(&p, 1, 0) == 0;
}

static void try_later(Run *run);

static int on_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Run *run = userdata;

        run->shim_link.again = sd_event_source_disable_unref(run->shim_link.again);
        if (!awaited(run))
                return 0;
        if (reach_again(run) >= 0)
                take_up(run);
        else
                try_later(run);
        return 0;
}

static void try_later(Run *run) {
        ShimLink *l = &run->shim_link;

        if (l->pause >= PAUSE_SAID_USEC && !l->said)
                log_session_warning(run->session->record->id, "its shim cannot be reached, and that is tried on");
        l->said |= l->pause >= PAUSE_SAID_USEC;
        conversation_give_up(run->conversation);
        l->pause = l->pause == 0 ? PAUSE_FIRST_USEC : MIN(l->pause * 2, PAUSE_MAX_USEC);
        int r = sd_event_add_time_relative(run->session->manager->event, &l->again, CLOCK_MONOTONIC, l->pause, 0, on_again, run);
        if (r < 0)
                log_session_error_errno(r, run->session->record->id, "no timer, so its shim is not reached any more: %m");
}

/* The end of its process, which is waited for, says more. */
static void on_gone(void *userdata) {
        Run *run = userdata;
        ShimLink *l = &run->shim_link;

        conversation_detach(run->conversation);
        run->shim = shim_client_free(run->shim);
        run_read_events(run);
        if (!awaited(run)) {
                run_check_finished(run);
                return;
        }
        l->breaks++;
        if (now_monotonic() - l->since >= CALM_USEC)
                l->pause = 0;
        if (l->pause == 0 && reach_again(run) >= 0) {
                l->pause = PAUSE_FIRST_USEC / 2; /* the next time is not at once */
                take_up(run);
                return;
        }
        try_later(run);
        run_repeat_stop(run); /* by a signal: how long it takes to be there again is not known */
}

void run_connect_shim(Run *run) {
        int r = run_reach_shim(run);

        if (r >= 0) {
                run_converse(run);
                return;
        }
        log_session_warning_errno(r, run->session->record->id, "its shim cannot be reached, and is tried again: %m");
        try_later(run);
}
