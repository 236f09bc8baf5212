/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
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
static void finish(Collection *c, Fault *f) {
        Session *s = c->session;
        Manager *m = s->manager;

        if (f->code != ERROR_NONE) {
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
        c->done(s, NULL, -EBADF, c->userdata);
        if (m->observer.session_removed && id)
                m->observer.session_removed(id, m->observer.userdata);
        session_free(s);
        free(c);
}

static void on_record_removed(_unused_ Manager *m, const char *id, int error, void *userdata) {
        Fault f = {};

        if (error < 0)
                (void) fault_set(&f, ERROR_STORAGE, "the record of session %s cannot be removed: %s", id, strerror(-error));
        finish(userdata, &f);
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
                finish(c, &f);
}

static void on_removed(_unused_ Message *m, const char *problem, void *userdata) {
        remove_all(userdata, problem);
}

static void on_unremoved(void *userdata) {
        Fault f = {};

        (void) fault_set(&f, ERROR_STORAGE, "errandd is ending; remove it when errandd is there again");
        finish(userdata, &f);
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
