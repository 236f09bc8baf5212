/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/session-run.h"

/* What an earlier errandd left. In embedded mode its sessions ended with it: a record in a live state is one of a session that nobody saw
 * the end of. In the others they went on, and are found again. */

/* Rounds of reading its spool: its broker, which dies with errandd, may still be writing when the next errandd is there already. */
#define SETTLE_ROUNDS 3U

typedef struct LastWord {
        bool exited;
        char *reason;
        uint64_t status;
        usec_t time;
} LastWord;

static void on_line(const SessionEvent *e, void *userdata) {
        LastWord *w = userdata;

        if (e->kind != SESSION_EVENT_EXITED)
                return;
        w->exited = true;
        free(w->reason);
        w->reason = strdup(e->reason);
        w->status = e->status;
        w->time = e->time;
}

/* A command that ended by itself says so. One that was ended, as its shim does when errandd is gone, is lost: nobody had asked for that. */
static void close_record(Session *s) {
        SessionRecord *record = s->record;
        LastWord word = {};
        unsigned damaged = 0;

        _cleanup_close_ int dir = session_open_dir(s), fd = dir < 0 ? dir : record_open_read(dir, "events");
        if (fd >= 0)
                (void) events_read(fd, &record->events_length, on_line, &word, &damaged);
        bool by_itself = word.exited && streq_ptr(word.reason, "exited") && record->state != SESSION_STARTING;
        record->ended = word.time ?: now_realtime();
        free(record->exit_reason);
        record->exit_reason = strdup(by_itself ? "exited" : "lost");
        record->exit_status = word.exited ? word.status : 137;
        free(word.reason);
        if (session_set_state(s, by_itself ? SESSION_STOPPED : SESSION_FAILED) >= 0)
                log_session_warning(record->id, "it was running when errandd ended; it is %s", by_itself ? "over" : "lost");
        session_sweep_sockets(s);
        s->settle = SETTLE_ROUNDS;
}

static int load_one(Manager *m, SessionRecord **record) {
        _cleanup_free_ char *problem = NULL;
        Session *s;

        _cleanup_close_ int dir = record_open(m->records, (*record)->id);
        if (dir < 0)
                return dir;
        int r = session_new(m, *record, &s);
        if (r < 0)
                return r;
        TAKE_PTR(*record);
        r = grant_list_read(dir, &s->grants, &problem);
        if (r < 0)
                log_session_warning(s->record->id, "its grants are not in force any more: %s", problem ?: strerror(-r));
        session_arm_expiry(s);
        bool live = session_state_live(session_state(s));
        (void) session_ingest(s, false); /* before its broker is told what grants there are */
        if (live && m->mode->units)
                r = session_adopt(s);
        else if (live)
                close_record(s);
        if (!live)
                (void) session_ingest(s, true);
        if (s->settle > 0 || s->run)
                manager_tick_begin(m);
        return r;
}

/* Its receipts go with its spool: the database's would be taken for those of the next session of that id. */
static void set_aside(Manager *m, const RecordEntry *e) {
        _cleanup_free_ char *name = NULL;

        int r = store_collect(m->store, e->id);
        if (r >= 0)
                r = record_set_aside(m->paths->state_fd, m->records, e->id, &name);
        if (r < 0)
                log_error_errno(r, "the record of session %s is damaged and left out, and cannot be set aside: %s: %m", e->id, e->problem);
        else
                log_error("the record of session %s is damaged: %s; what there is of the session is in %s/.damaged/%s now", e->id, e->problem,
                          m->paths->state, name);
}

int manager_load(Manager *m, Fault *f) {
        RecordEntry *entries;
        size_t n;

        int r = record_list(m->records, &entries, &n);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "the records in %s cannot be listed: %s", m->paths->state, strerror(-r));
        for (size_t i = 0; i < n; i++) {
                RecordEntry *e = &entries[i];
                if (e->problem && record_remove_unfinished(m->records, e->id) >= 0)
                        continue;
                if (e->damaged) {
                        set_aside(m, e);
                        continue;
                }
                if (e->problem) {
                        log_warning("the record of %s is left out: %s", e->id, e->problem);
                        continue;
                }
                r = load_one(m, &e->record);
                if (r < 0)
                        log_warning_errno(r, "the record of %s is not taken up whole: %m", e->id);
        }
        record_list_free(entries, n);
        return 0;
}
