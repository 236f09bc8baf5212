/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/disk-work.h"
#include "errandd/session-run.h"
#include "errandd/spare.h"

/* The session's own state is removed by the account that made it, by the launcher; what errandd made, by errandd; the record last, so that a
 * collection that was cut short can be asked for again. */

typedef struct Collection {
        Session *session;
        Done done;
        void *userdata;
} Collection;

static int remove_own(Session *s, Fault *f) {
        static const struct {
                const char *name;
                int flags;
        } parts[] = {{"broker/session", 0}, {"broker", AT_REMOVEDIR}, {"policy.toml", 0}, {".policy.toml.tmp", 0}, {"state", AT_REMOVEDIR}};
        int state = s->manager->paths->state_fd;

        _cleanup_close_ int own = openat(state, s->record->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (own < 0 && errno == ENOENT)
                return 0;
        for (size_t i = 0; own >= 0 && i < ELEMENTSOF(parts); i++)
                if (unlinkat(own, parts[i].name, parts[i].flags) < 0 && errno != ENOENT)
                        return fault_set(f, ERROR_STORAGE, "%s of session %s cannot be removed: %s", parts[i].name, s->record->id, strerror(errno));
        if (own < 0 || unlinkat(state, s->record->id, AT_REMOVEDIR) < 0)
                return fault_set(f, ERROR_STORAGE, "the directory of session %s cannot be removed: %s", s->record->id, strerror(errno));
        return 0;
}

/* The record is the last thing to go, and that has to be on disk before it is told. */
static void finish(Collection *c, bool gone, Fault *f) {
        Session *s = c->session;
        Manager *m = s->manager;

        if (!gone) {
                s->collecting = false;
                c->done(s, f, -EBADF, c->userdata);
                fault_done(f);
                free(c);
                return;
        }
        _cleanup_free_ char *id = strdup(s->record->id);
        s->record->state = SESSION_COLLECTED;
        log_session_info(s->record->id, "collected");
        manager_remove(m, s);
        if (id)
                spare_drop(m, id);
        session_forget_grant_waits(s, true);
        c->done(s, f->code != ERROR_NONE ? f : NULL, -EBADF, c->userdata);
        fault_done(f);
        if (m->observer.session_removed && id)
                m->observer.session_removed(id, m->observer.userdata);
        session_free(s);
        free(c);
}

/* What is gone is so for whoever asks, too: nothing brings it back but a loss of power. */
static bool record_is_gone(const Manager *m, const char *id) {
        struct stat st;

        _cleanup_close_ int dir = record_open(m->records, id);
        return dir == -ENOENT || (dir >= 0 && fstatat(dir, RECORD_DESCRIPTION_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT);
}

static void on_record_removed(Manager *m, const char *id, int error, void *userdata) {
        bool gone = error >= 0 || record_is_gone(m, id);
        Fault f = {};

        if (error < 0 && gone)
                (void) fault_set(&f, ERROR_STORAGE, "session %s is removed, but a loss of power may bring its record back: %s", id, strerror(-error));
        else if (error < 0)
                (void) fault_set(&f, ERROR_STORAGE, "the record of session %s cannot be removed: %s", id, strerror(-error));
        finish(userdata, gone, &f);
}

static void remove_all(Collection *c, const char *problem) {
        Session *s = c->session;
        Fault f = {};

        int r = problem ? fault_set(&f, ERROR_STORAGE, "the state of session %s cannot be removed: %s", s->record->id, problem) : remove_own(s, &f);
        if (r >= 0) {
                r = store_collect(s->manager->store, s->record->id);
                if (r < 0)
                        (void) fault_set(&f, ERROR_STORAGE, "the receipts of session %s cannot be removed: %s", s->record->id,
                                         store_error_text(s->manager->store) ?: strerror(-r));
        }
        if (r >= 0) {
                r = disk_remove_record(s->manager, s->record->id, on_record_removed, c);
                if (r < 0)
                        (void) fault_set(&f, ERROR_STORAGE, "the record of session %s cannot be removed: %s", s->record->id, strerror(-r));
        }
        if (r < 0)
                finish(c, false, &f);
}

static void on_removed(_unused_ Message *m, const char *problem, void *userdata) {
        remove_all(userdata, problem);
}

static void on_unremoved(void *userdata) {
        Fault f = {};

        (void) fault_set(&f, ERROR_STORAGE, "errandd is ending; remove it when errandd is there again");
        finish(userdata, false, &f);
}

int session_collect(Session *s, Done done, void *userdata, Fault *f) {
        LaunchClient *launcher;

        if (!session_state_may_move(session_state(s), SESSION_COLLECTED) || s->run || s->collecting)
                return fault_set(f, ERROR_WRONG_STATE, "session %s is %s; stop it before its record is removed", s->record->id,
                                 s->collecting ? "being collected" : session_state_to_string(session_state(s)));
        Collection *c = calloc(1, sizeof(Collection));
        if (!c)
                return fault_set(f, ERROR_SETUP, "out of memory");
        *c = (Collection){.session = s, .done = done, .userdata = userdata};
        s->collecting = true;
        _cleanup_close_ int state = session_open_state(s);
        if (state == -ENOENT) { /* so nothing of it is left */
                remove_all(c, NULL);
                return 0;
        }
        int r = state;
        if (r < 0)
                (void) fault_set(f, ERROR_STORAGE, "the state of session %s cannot be opened: %s", s->record->id, strerror(-r));
        if (r >= 0)
                r = session_launcher(s, &launcher, f);
        if (r >= 0) {
                r = launch_client_collect(launcher, s->record->id, state, on_removed, on_unremoved, c);
                if (r < 0)
                        (void) fault_set(f, ERROR_SETUP, "errand-launch cannot be asked: %s", strerror(-r));
        }
        if (r < 0) {
                s->collecting = false;
                free(c);
        }
        return r;
}
