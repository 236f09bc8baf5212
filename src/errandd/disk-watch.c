/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/size.h"
#include "basic/text.h"
#include "errandd/disk-pace.h"
#include "errandd/disk-watch.h"
#include "errandd/session-run.h"
#include "shared/event-timer.h"

#define WARN_PERCENT 80U
#define LOOKS_MAX 4U /* at once, of all sessions: a hundred of them may be found again in one moment */
#define OWNED_LOOKS_MAX 2U /* of one account's */
#define TURN_USEC (100 * USEC_PER_MSEC) /* until the next try where others look */

/* One that is under way, which goes on when its run is over: as long as the launcher works at it, it counts. */
typedef struct DiskLook {
        Manager *manager;
        DiskWatch *watch; /* NULL: nobody waits for it any more */
        uid_t owner;
        struct DiskLook *next;
} DiskLook;

struct DiskWatch {
        Run *run;
        DiskLook *look; /* NULL: no answer is awaited */
        sd_event_source *timer;
        DiskPace pace;
        uint64_t budget; /* as configured when it was started, like everything else that it has */
        usec_t longest;
        usec_t asked;    /* monotonic */
        bool warned, failed, partly; /* told once each */
};

typedef struct Measured {
        uint64_t state, project, system, grown;
        bool state_whole, project_whole;
} Measured;

static void again(DiskWatch *w, usec_t usec) {
        int r = timer_again(w->timer, usec);
        if (r < 0)
                log_session_warning_errno(r, w->run->session->record->id, "its disk use is not looked at any more: %m");
}

static bool may_look(const Manager *m, uid_t owner) {
        unsigned all = 0, own = 0;

        for (const DiskLook *l = m->disk_looks; l; l = l->next) {
                all++;
                own += l->owner == owner;
        }
        return all < LOOKS_MAX && own < OWNED_LOOKS_MAX;
}

/* Whose it is, if anybody waits for it. */
static DiskWatch *end_look(DiskLook *l) {
        DiskWatch *w = l->watch;
        DiskLook **at = &l->manager->disk_looks;

        while (*at != l)
                at = &(*at)->next;
        *at = l->next;
        free(l);
        if (w)
                w->look = NULL;
        return w;
}

static void fail_once(DiskWatch *w, const char *problem) {
        if (!w->failed)
                log_session_warning(w->run->session->record->id, "its disk use cannot be measured, and is tried again: %s", problem);
        w->failed = true;
        again(w, w->longest);
}

/* How large the project was at the start: taken from the first look, and kept for an errandd that finds the session again. The session may have
 * begun by then, long before where others were looked at first: what the file system has grown by since it was launched may be its work. */
static void take_first(DiskWatch *w, const Measured *m) {
        Session *s = w->run->session;
        SessionRecord *record = s->record;
        uint64_t first = record->system_bytes > 0 ? record->system_bytes - 1 : m->system, now = m->system + m->grown, grown = now > first ? now - first : 0;

        if (record->project_bytes > 0)
                return;
        record->project_bytes = m->project_whole ? m->project - MIN(m->project, grown) + 1 : PROJECT_NOT_MEASURED;
        record->system_bytes = first + 1;
        if (session_state(s) != SESSION_STARTING) /* else it is written with the next state */
                (void) session_save(s);
}

static uint64_t beyond(uint64_t now, uint64_t first) {
        return now > first - 1 ? now - (first - 1) : 0;
}

/* In use beyond what there was. A session could make its project one that cannot be measured, or have found it so from one before. */
static uint64_t used_of(DiskWatch *w, const Measured *m) {
        const SessionRecord *record = w->run->session->record;

        if (record->project_bytes != PROJECT_NOT_MEASURED)
                return m->state + beyond(m->project, record->project_bytes);
        if (!w->partly)
                session_notice(w->run->session, "disk", "the project has files that cannot all be measured, too many, too deep or closed: what its whole file system "
                               "grows by counts instead");
        w->partly = true;
        return MAX(m->state, beyond(m->system, record->system_bytes)); /* on one file system the state is a part of that */
}

static bool beyond_measure(const DiskWatch *w, const Measured *m) {
        return !m->state_whole || (!m->project_whole && w->run->session->record->project_bytes != PROJECT_NOT_MEASURED);
}

/* True: it is being stopped. */
static bool judge(DiskWatch *w, uint64_t used, const Measured *m) {
        char has_buffer[SIZE_TEXT_MAX], may_buffer[SIZE_TEXT_MAX];
        const char *has = size_about(used, has_buffer), *may = size_about(w->budget, may_buffer);
        const char *whose = w->partly && used > m->state ? "; its project cannot be measured, so that this is what the whole file system has grown by, and others may have written of it"
                                                         : "";

        if (beyond_measure(w, m)) {
                run_stop_for(w->run, "disk", "the session has files that cannot all be measured, too many, too deep or closed, and is stopped");
                return true;
        }
        if (used > w->budget) {
                run_stop_for(w->run, "disk", "the session takes %s of the disk, more than its budget of %s (sandbox.disk), and is stopped%s", has, may, whose);
                return true;
        }
        if (!w->warned && used > w->budget / 100 * WARN_PERCENT) {
                session_notice(w->run->session, "disk", "the session takes %s of the disk; beyond %s (sandbox.disk) it will be stopped%s", has, may, whose);
                w->warned = true;
        }
        return false;
}

static int read_answer(Message *message, Measured *m) {
        JsonObject *o = message_object(message);

        if (!streq(message_type(message), "disk") || json_get_u64(o, "state", DISK_BYTES_MAX, &m->state) < 0 ||
            json_get_u64(o, "project", DISK_BYTES_MAX, &m->project) < 0 || json_get_bool(o, "stateWhole", &m->state_whole) < 0 ||
            json_get_bool(o, "projectWhole", &m->project_whole) < 0 ||
            json_get_u64(o, "system", DISK_BYTES_MAX, &m->system) < 0 || json_get_u64(o, "grown", DISK_BYTES_MAX, &m->grown) < 0)
                return -EBADMSG;
        return 0;
}

static void on_measured(Message *message, const char *problem, void *userdata) {
        DiskWatch *w = end_look(userdata);
        usec_t now = now_monotonic();
        Measured m = {};

        if (!w || w->run->phase != RUN_GOES)
                return;
        if (!problem && read_answer(message, &m) < 0)
                problem = "the launcher's answer was not understood";
        if (problem) {
                fail_once(w, problem);
                return;
        }
        w->failed = false;
        take_first(w, &m);
        uint64_t used = used_of(w, &m);
        usec_t next = disk_pace_next(&w->pace, used, w->budget, now, now - w->asked, w->longest);
        if (judge(w, used, &m))
                return; /* the run may be gone */
        log_session_debug(w->run->session->record->id, "%llu bytes of the disk, looked at again in %llu ms", (unsigned long long) used,
                          (unsigned long long) (next / USEC_PER_MSEC));
        again(w, next);
}

static void on_unmeasured(void *userdata) {
        (void) end_look(userdata);
}

static int send(DiskWatch *w, LaunchClient *launcher, int state) {
        Session *s = w->run->session;
        DiskLook *l = calloc(1, sizeof(DiskLook));

        if (!l)
                return -ENOMEM;
        *l = (DiskLook){.manager = s->manager, .watch = w, .owner = s->record->owner, .next = s->manager->disk_looks};
        s->manager->disk_looks = w->look = l;
        w->asked = now_monotonic();
        int r = launch_client_disk(launcher, state, s->project, on_measured, on_unmeasured, l);
        if (r < 0)
                (void) end_look(l);
        return r;
}

static void ask(DiskWatch *w) {
        Session *s = w->run->session;
        LaunchClient *launcher;
        Fault f = {};

        if (!may_look(s->manager, s->record->owner)) {
                again(w, TURN_USEC);
                return;
        }
        _cleanup_close_ int state = session_open_state(s);
        int r = state < 0 ? state : session_open_project(s, &f);
        if (r >= 0)
                r = session_launcher(s, &launcher, &f);
        if (r >= 0)
                r = send(w, launcher, state);
        if (r < 0)
                fail_once(w, f.text ?: strerror(-r));
        fault_done(&f);
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        ask(userdata);
        return 0;
}

int disk_watch_new(Run *run, DiskWatch **ret) {
        SessionRecord *record = run->session->record;
        uint64_t used = fd_system_used(run->session->project);
        DiskWatch *w = calloc(1, sizeof(DiskWatch));

        if (!w)
                return -ENOMEM;
        *w = (DiskWatch){.run = run, .budget = record->disk_max, .longest = record->disk_check};
        int r = sd_event_add_time_relative(run->session->manager->event, &w->timer, CLOCK_MONOTONIC, w->longest, 0, on_timer, w);
        if (r >= 0)
                r = sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
        if (r < 0) {
                disk_watch_free(w);
                return r;
        }
        if (record->system_bytes == 0 && used > 0)
                record->system_bytes = MIN(used, DISK_BYTES_MAX) + 1;
        *ret = w;
        return 0;
}

void disk_watch_begin(DiskWatch *w) {
        if (w)
                ask(w);
}

DiskWatch *disk_watch_free(DiskWatch *w) {
        if (!w)
                return NULL;
        if (w->look)
                w->look->watch = NULL;
        sd_event_source_disable_unref(w->timer);
        return mfree(w);
}
