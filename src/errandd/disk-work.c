/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/disk-work.h"
#include "errandd/project.h"
#include "errandd/session-run.h"
#include "errandd/worker.h"

struct DiskWork {
        Manager *manager;
        int dir; /* .records, .projects or one record; a descriptor of its own: it may outlive its manager */
        char *id, *name, *text;
        size_t size;
        uid_t owner;
        int (*act)(DiskWork *w);
        atomic_bool begun;
        int error;
        DiskDone done;
        void *userdata;
};

static void run(void *data) {
        DiskWork *w = data;

        atomic_store(&w->begun, true);
        w->error = w->act(w);
}

static void tell(void *data) {
        DiskWork *w = data;

        if (w->done)
                w->done(w->manager, w->id, MIN(w->error, 0), w->userdata);
}

static void work_free(void *data) {
        DiskWork *w = data;

        safe_close(w->dir);
        free(w->id);
        free(w->name);
        free(w->text);
        free(w);
}

static const WorkClass class = {.run = run, .done = tell, .free = work_free};

static int submit(Manager *m, int dir, const DiskWork *what, const char *id, DiskWork **ret) {
        DiskWork *w = malloc(sizeof(DiskWork));

        if (!w) {
                free(what->text);
                return -ENOMEM;
        }
        *w = *what;
        w->manager = m;
        w->id = strdup(id);
        w->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
        int r = w->dir < 0 ? -errno : !w->id ? -ENOMEM : worker_do(m->disk, &class, w, NULL);
        if (r < 0)
                work_free(w);
        else if (ret)
                *ret = w;
        return r;
}

/* ---- a record ---- */

static int settle(DiskWork *w) {
        int r = session_record_settle(w->dir, w->id);
        return r == -ENOENT ? 0 : r; /* it was removed meanwhile */
}

static void on_settled(Manager *m, const char *id, int error, _unused_ void *userdata) {
        Session *s = manager_find(m, id);

        if (!s)
                return;
        if (s->settling && atomic_load(&s->settling->begun))
                s->settling = NULL;
        if (error < 0)
                session_notice(s, "record", "its record cannot be written to the disk (%s): a loss of power would leave it as it was before; it is tried again "
                               "with its next change", strerror(-error));
}

/* One that has not begun takes what is written by then. */
void disk_settle_record(Session *s) {
        if (s->settling && !atomic_load(&s->settling->begun))
                return;
        int r = submit(s->manager, s->manager->records, &(DiskWork){.act = settle, .done = on_settled}, s->record->id, &s->settling);
        if (r < 0)
                log_session_warning_errno(r, s->record->id, "its record is not written to the disk before its next change: %m");
}

static int replace(DiskWork *w) {
        return record_replace_file(w->dir, w->name, w->text, w->size);
}

/* That record's, and not that of a session which has the id by then. */
int disk_replace(Manager *m, const char *id, const char *name, char *text, size_t size, DiskDone done, void *userdata) {
        _cleanup_close_ int dir = record_open(m->records, id);
        char *copy = dir < 0 ? NULL : strdup(name);

        if (!copy) {
                free(text);
                return dir < 0 ? dir : -ENOMEM;
        }
        return submit(m, dir, &(DiskWork){.act = replace, .name = copy, .text = text, .size = size, .done = done, .userdata = userdata}, id, NULL);
}

static int remove_record(DiskWork *w) {
        int r = record_remove(w->dir, w->id);

        if (r == -ENOENT) /* by an earlier try, of which it was not sure that it stays so */
                r = fsync(w->dir) < 0 ? -errno : 0;
        return r;
}

int disk_remove_record(Manager *m, const char *id, DiskDone done, void *userdata) {
        return submit(m, m->records, &(DiskWork){.act = remove_record, .done = done, .userdata = userdata}, id, NULL);
}

/* ---- receipts ---- */

static int checkpoint(DiskWork *w) {
        return store_checkpoint(w->name);
}

static void on_checkpoint(Manager *m, _unused_ const char *id, int error, _unused_ void *userdata) {
        m->checkpoints = false;
        if (error < 0 && error != -EAGAIN)
                log_warning_errno(error, "the journal of receipts.db does not get into it, and is tried again with the next receipts: %m");
}

void disk_checkpoint_store(Manager *m) {
        if (m->checkpoints || !store_grown(m->store))
                return;
        char *path = strdup(m->paths->state);
        int r = path ? submit(m, m->paths->state_fd, &(DiskWork){.act = checkpoint, .name = path, .done = on_checkpoint}, "", NULL) : -ENOMEM;
        m->checkpoints = r >= 0;
}

/* ---- projects ---- */

/* Looked at here, where no other claim is under way: of two that come at once the first one has it. */
static int claim(DiskWork *w) {
        Fault f = {};
        uid_t owner;

        int r = project_owner(w->dir, w->id, &owner, &f);
        if (r == -ENOENT)
                r = project_claim(w->dir, w->id, w->owner);
        else if (r >= 0)
                r = owner == w->owner ? 0 : -EEXIST;
        fault_done(&f);
        return r;
}

int disk_claim_project(Manager *m, const char *project, uid_t owner, DiskDone done, void *userdata) {
        return submit(m, m->owners, &(DiskWork){.act = claim, .owner = owner, .done = done, .userdata = userdata}, project, NULL);
}
