/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/idle-watch.h"
#include "errandd/session-run.h"
#include "shared/event-timer.h"
#include "shared/timespan.h"

#define LOOKS 8U                           /* within the limit */
#define LOOK_MAX_USEC (60 * USEC_PER_SEC)
#define WARN_MAX_USEC (60 * USEC_PER_SEC)  /* before the end, or a quarter of the limit */
#define BUSY_SHARE 100U                    /* of a processor: one part in so many is work, less is an event loop that turns */
#define BUSY_GRAIN_USEC (20 * USEC_PER_MSEC) /* and so much more: /proc tells user's and system's time in ticks of 10 ms */

struct IdleWatch {
        Run *run;
        sd_event_source *timer;
        usec_t limit;
        usec_t since;  /* of the last thing that happened, monotonic */
        usec_t rested; /* since when it has used more than that processor time; 0: not looked at yet */
        uint64_t cpu;
        off_t transcript;
        bool attached, warned;
};

static void again(IdleWatch *w, usec_t usec) {
        int r = timer_again(w->timer, usec);
        if (r < 0)
                log_session_warning_errno(r, w->run->session->record->id, "whether anything happens in it is not looked at any more: %m");
}

static usec_t lead(const IdleWatch *w) {
        return MIN(w->limit / 4, WARN_MAX_USEC);
}

/* Rounded: nobody wants to read microseconds. */
static const char *about(usec_t usec, char buffer[static TIMESPAN_TEXT_MAX]) {
        usec_t unit = usec >= 10 * USEC_PER_SEC ? USEC_PER_SEC : 100 * USEC_PER_MSEC;
        return timespan_format((usec + unit / 2) / unit * unit, buffer);
}

static void judge(IdleWatch *w, usec_t now) {
        usec_t idle = now - w->since, warn_at = w->limit - lead(w), next = MIN(w->limit / LOOKS, LOOK_MAX_USEC);
        char has[TIMESPAN_TEXT_MAX], left[TIMESPAN_TEXT_MAX];

        if (idle >= w->limit && w->warned) {
                run_stop_for(w->run, "idle", "nothing has happened in the session for %s, and nobody is attached: it is stopped (timeouts.idleMs)", about(idle, has));
                return; /* the run may be gone */
        }
        if (idle >= warn_at && !w->warned) {
                w->warned = true;
                w->since = now - warn_at; /* however late the look is: the time that is told is left */
                session_notice(w->run->session, "idle", "nothing has happened in the session for %s, and nobody is attached: it will be stopped in %s "
                               "(timeouts.idleMs)", about(idle, has), about(lead(w), left));
                idle = warn_at;
        }
        again(w, MAX(MIN(next, (w->warned ? w->limit : warn_at) - idle), USEC_PER_MSEC));
}

/* Whether it works. What it used is counted from when it last used none, so that a tick is no work, and small work is some in the end. */
static bool is_busy(IdleWatch *w, uint64_t cpu, usec_t now) {
        bool busy = cpu > w->cpu && cpu - w->cpu > (now - w->rested) / BUSY_SHARE + BUSY_GRAIN_USEC;

        if (busy || cpu <= w->cpu || w->rested == 0) {
                w->cpu = cpu;
                w->rested = now;
        }
        return busy;
}

static void on_usage(Message *m, const char *problem, void *userdata) {
        IdleWatch *w = ((Run *) userdata)->idle;
        usec_t now = now_monotonic();
        uint64_t cpu = 0;
        struct stat st;

        if (!w || w->run->phase != RUN_GOES)
                return;
        _cleanup_close_ int dir = session_open_dir(w->run->session), transcript = dir < 0 ? dir : record_open_read(dir, "transcript");
        bool known = !problem && json_get_u64(message_object(m), "cpu", INT64_MAX, &cpu) >= 0 && transcript >= 0 && fstat(transcript, &st) >= 0;
        bool first = w->rested == 0, busy = known && is_busy(w, cpu, now);
        if (!known || first || w->attached || busy || conversation_busy(w->run->conversation) || st.st_size != w->transcript) {
                w->since = now;
                w->warned = false;
        }
        if (known)
                w->transcript = st.st_size;
        judge(w, now);
}

static void unknown(IdleWatch *w) {
        w->since = now_monotonic();
        judge(w, w->since);
}

static void on_status(Message *m, const char *problem, void *userdata) {
        Run *run = userdata;
        IdleWatch *w = run->idle;
        LaunchClient *launcher;
        uint64_t attached = 0;
        Fault f = {};

        if (!w || run->phase != RUN_GOES)
                return;
        int r = problem ? -EIO : json_get_u64(message_object(m), "attached", UINT32_MAX, &attached);
        w->attached = attached > 0;
        if (r >= 0)
                r = session_launcher(run->session, &launcher, &f);
        if (r >= 0)
                r = launch_client_usage(launcher, run->session->record->id, on_usage, run);
        if (r < 0)
                unknown(w);
        fault_done(&f);
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        IdleWatch *w = userdata;

        if (!w->run->shim || shim_client_status(w->run->shim, on_status, w->run) < 0)
                unknown(w);
        return 0;
}

int idle_watch_new(Run *run, IdleWatch **ret) {
        usec_t limit = run->session->record->idle_limit;

        if (limit == 0 || run->session->record->own_stdio)
                return 0;
        IdleWatch *w = calloc(1, sizeof(IdleWatch));
        if (!w)
                return -ENOMEM;
        *w = (IdleWatch){.run = run, .limit = limit, .since = now_monotonic()};
        int r = sd_event_add_time_relative(run->session->manager->event, &w->timer, CLOCK_MONOTONIC, MIN(limit / LOOKS, LOOK_MAX_USEC), limit / 100, on_timer, w);
        if (r < 0) {
                free(w);
                return r;
        }
        *ret = w;
        return 0;
}

IdleWatch *idle_watch_free(IdleWatch *w) {
        if (w)
                sd_event_source_disable_unref(w->timer);
        return mfree(w);
}
