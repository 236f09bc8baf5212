/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A session's grants on their way to the disk. One text at a time, with all that has changed until then: whoever asked for a change hears of that text, and what is
 * asked for meanwhile goes into the next. So a text never has a change in it that was refused, nor one that may be yet: what a caller was told did not work is
 * not there after a kill either. */

#include "basic/log.h"
#include "errandd/disk-work.h"
#include "errandd/session-run.h"

#define AGAIN_FIRST_USEC USEC_PER_SEC
#define AGAIN_MAX_USEC (60 * USEC_PER_SEC)

/* Who waits for a text. */
struct GrantWait {
        GrantWait *next;
        DiskDone done;
        void *userdata;
};

struct GrantBatch {
        GrantWait *waits;
        bool changing;
};

static void begin(Session *s);

static int on_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Session *s = userdata;

        s->grants_again = sd_event_source_disable_unref(s->grants_again);
        begin(s);
        return 0;
}

/* What has changed for good, as a revocation has, is written when the disk takes it. */
static void try_again(Session *s, int error) {
        if (s->grants_pause == 0)
                log_session_warning_errno(error, s->record->id, "its grants cannot be written, and that is tried again: %m");
        s->grants_pause = s->grants_pause == 0 ? AGAIN_FIRST_USEC : MIN(2 * s->grants_pause, AGAIN_MAX_USEC);
        if (!s->grants_again && sd_event_add_time_relative(s->manager->event, &s->grants_again, CLOCK_MONOTONIC, s->grants_pause, 0, on_again, s) < 0)
                log_session_warning(s->record->id, "no timer, so that its grants are written with their next change");
}

static void tell(Manager *m, const char *id, GrantWait *waits, int error) {
        while (waits) {
                GrantWait *w = waits;

                waits = w->next;
                if (w->done)
                        w->done(m, id, error, w->userdata);
                free(w);
        }
}

static void on_written(Manager *m, const char *id, int error, void *userdata) {
        _cleanup_free_ GrantBatch *batch = userdata;
        Session *s = manager_find(m, id);

        if (!s || s->grant_batch != batch) /* it has gone, and they were told */
                return;
        bool lost = batch->changing && error < 0;
        s->grant_batch = NULL;
        /* Each takes back what it asked for before there is another text. */
        s->grants_telling = true;
        tell(m, id, batch->waits, error);
        s->grants_telling = false;
        s->grants_changed |= lost;
        if (error >= 0)
                s->grants_pause = 0;
        if (s->grant_waits || (s->grants_changed && error >= 0))
                begin(s);
        else if (s->grants_changed)
                try_again(s, error);
}

static int submit(Session *s, GrantBatch *batch) {
        char *text;
        size_t size;

        int r = batch ? grant_list_format(&s->grants, &text, &size) : -ENOMEM;
        return r < 0 ? r : disk_replace(s->manager, s->record->id, GRANT_LIST_NAME, text, size, on_written, batch);
}

static void begin(Session *s) {
        if (s->grant_batch || s->grants_telling || (!s->grant_waits && !s->grants_changed))
                return;
        GrantBatch *batch = malloc(sizeof(GrantBatch));
        int r = submit(s, batch);
        GrantWait *waits = TAKE_PTR(s->grant_waits);
        if (r >= 0) {
                *batch = (GrantBatch){.waits = waits, .changing = s->grants_changed};
                s->grants_changed = false;
                s->grant_batch = batch;
                return;
        }
        free(batch);
        s->grants_telling = true;
        tell(s->manager, s->record->id, waits, r);
        s->grants_telling = false;
        if (s->grants_changed || s->grant_waits)
                try_again(s, r);
}

void session_write_grants_along(Session *s) {
        s->grants_changed = true;
        if (!s->grants_again)
                begin(s);
}

int session_write_grants(Session *s, DiskDone done, void *userdata) {
        GrantWait *w = malloc(sizeof(GrantWait)), **at = &s->grant_waits;

        if (!w)
                return -ENOMEM;
        *w = (GrantWait){.done = done, .userdata = userdata};
        while (*at) /* in the order in which they came */
                at = &(*at)->next;
        *at = w;
        begin(s); /* it has told them where that failed */
        return 0;
}

void session_forget_grant_waits(Session *s, bool told) {
        GrantWait *lists[] = {s->grant_batch ? TAKE_PTR(s->grant_batch->waits) : NULL, TAKE_PTR(s->grant_waits)};

        s->grants_again = sd_event_source_disable_unref(s->grants_again);
        s->grant_batch = NULL; /* on_written()'s */
        s->grants_telling = true;
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                for (GrantWait *w = lists[i]; w && !told; w = w->next)
                        w->done = NULL;
                tell(s->manager, s->record->id, lists[i], -ECANCELED);
        }
}
