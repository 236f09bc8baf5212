/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "broker/limits.h"
#include "broker/receipts.h"
#include "broker/spool-file.h"

#define SYNC_USEC (USEC_PER_SEC / 2) /* the promise is one second; the rest is the disk's */
#define RETRY_USEC USEC_PER_SEC
#define GATHER_USEC (USEC_PER_SEC / 20) /* what comes within is written at once: a thread that is woken for each call costs as much as the rest of it */
#define GATHER_MAX (SPOOL_QUEUE_MAX / 4) /* and no longer, once so many wait */
#define GRANT_WAIT_USEC (2 * USEC_PER_SEC) /* the loop stands still for this long at most */

typedef enum GrantState {
        GRANT_IDLE,
        GRANT_WANTED,
        GRANT_DONE,
} GrantState;

/* Calls that never get to a provider cost a session nothing, and come by the thousand in a second: their receipts are rationed, and what has none
 * is counted. */
typedef enum RationKind {
        RATION_DENIED, /* the promise: one a minute */
        RATION_TURNED_AWAY,
        RATION_UNSENT, /* apart from these, as they are part of a budget's count */
        _RATION_KIND_MAX,
        _RATION_KIND_INVALID = -EINVAL,
} RationKind;

typedef struct Ration {
        usec_t spent_until; /* each receipt takes its time from here on; at most a burst's worth ahead */
        uint64_t unrecorded; /* since the last was kept */
        uint64_t unlogged;
        usec_t log_at;
} Ration;

struct Receipts {
        const char *session;
        SpoolFile file; /* the writer's alone, once its thread runs */
        pthread_t thread;
        bool running;
        int failed; /* an eventfd, from the writer to the loop */
        sd_event_source *failed_io;
        void (*failed_handler)(void *userdata);
        void *failed_userdata;

        pthread_mutex_t lock; /* guards all that follows */
        pthread_cond_t wake;  /* for the writer */
        pthread_cond_t answer; /* for receipts_grant_used() */
        SpoolBatch pending;
        usec_t pending_since;
        size_t n_kept; /* records in pending and with the writer */
        uint64_t lost;
        bool stopping;
        uint8_t grant[SPOOL_HEADER_SIZE + SPOOL_PAYLOAD_MAX];
        size_t grant_size;
        GrantState grant_state;
        bool grant_abandoned; /* nobody waits for the answer any more */
        int grant_result;
        Ration rations[_RATION_KIND_MAX];
};

/* Of the writer, outside the lock. */
typedef struct Writer {
        SpoolBatch batch; /* not yet written */
        usec_t dirty;     /* since when bytes wait for a sync; 0 = none */
        usec_t retry_at;  /* 0 = writing works */
        usec_t logged;    /* last complaint */
        bool complained;
        uint64_t lost_said;
} Writer;

static void wait_until(Receipts *r, pthread_cond_t *cond, usec_t when) {
        if (when == USEC_INFINITY) {
                (void) pthread_cond_wait(cond, &r->lock);
                return;
        }
        struct timespec ts = {
                .tv_sec = (time_t) (when / USEC_PER_SEC),
                .tv_nsec = (long) (when % USEC_PER_SEC * 1000),
        };
        (void) pthread_cond_timedwait(cond, &r->lock, &ts);
}

/* With the lock held: until there is something to write, to sync or to say. */
static void writer_wait(Receipts *r, const Writer *w) {
        for (;;) {
                usec_t now = now_monotonic(), next = USEC_INFINITY;

                if (r->stopping || r->grant_state == GRANT_WANTED)
                        return;
                if (r->pending.n > 0 && w->retry_at == 0) {
                        if (r->pending.n >= GATHER_MAX)
                                return;
                        next = r->pending_since + GATHER_USEC;
                }
                if (w->retry_at > 0)
                        next = MIN(next, w->retry_at);
                if (w->dirty > 0)
                        next = MIN(next, w->dirty + SYNC_USEC);
                for (RationKind k = 0; k < _RATION_KIND_MAX; k++)
                        if (r->rations[k].unlogged > 0)
                                next = MIN(next, r->rations[k].log_at);
                if (next <= now)
                        return;
                wait_until(r, &r->wake, next);
        }
}

static void writer_complain(Receipts *r, Writer *w, int error, uint64_t lost, size_t waiting) {
        usec_t now = now_monotonic();

        if (w->complained && now < w->logged + USEC_PER_MINUTE)
                return;
        w->complained = true;
        w->logged = now;
        w->lost_said = lost;
        log_error_errno(error, "session %s: receipts cannot be written: %m; %zu waiting, %llu lost; calls go on", r->session, waiting,
                        (unsigned long long) lost);
        /* Full only when nobody watches. */
        (void) !write(r->failed, &(uint64_t) {1}, sizeof(uint64_t));
}

static void log_rationed(const Receipts *r, RationKind k, uint64_t n) {
        static const char *const calls[_RATION_KIND_MAX] = {
                [RATION_DENIED] = " without the session's stand-in, refused",
                [RATION_TURNED_AWAY] = ", turned away",
                [RATION_UNSENT] = ", of which nothing reached a provider",
        };

        if (n > 0)
                log_warning("session %s: %llu more call%s%s, without a receipt of %s own", r->session, (unsigned long long) n, n == 1 ? "" : "s",
                            calls[k], n == 1 ? "its" : "their");
}

/* Writes, then syncs when it is time. 0, or why not all of it is kept. */
static int writer_write(Receipts *r, Writer *w, const uint8_t *grant, size_t grant_size, bool sync_now) {
        int e = spool_file_write(&r->file, &w->batch);

        if (e >= 0 && grant_size > 0) {
                e = spool_file_write_one(&r->file, &w->batch, grant, grant_size);
                sync_now = true;
        }
        if (r->file.dirty && w->dirty == 0)
                w->dirty = now_monotonic();
        if (w->dirty > 0 && (sync_now || now_monotonic() >= w->dirty + SYNC_USEC)) {
                int s = spool_file_sync(&r->file);
                w->dirty = 0;
                if (e >= 0)
                        e = s;
        }
        if (e >= 0 && w->retry_at > 0) {
                log_info("session %s: receipts are written again", r->session);
                w->complained = false;
        }
        w->retry_at = e < 0 ? now_monotonic() + RETRY_USEC : 0;
        return e;
}

/* One turn, entered and left with the lock held. */
static void writer_turn(Receipts *r, Writer *w) {
        uint64_t rationed[_RATION_KIND_MAX] = {}, lost = r->lost;
        bool grant = r->grant_state == GRANT_WANTED, stopping = r->stopping;
        size_t before;

        for (RationKind k = 0; k < _RATION_KIND_MAX; k++)
                if (r->rations[k].unlogged > 0 && (stopping || now_monotonic() >= r->rations[k].log_at)) {
                        rationed[k] = r->rations[k].unlogged;
                        r->rations[k].unlogged = 0;
                }
        spool_batch_move(&w->batch, &r->pending);
        before = w->batch.n;
        pthread_mutex_unlock(&r->lock);

        for (RationKind k = 0; k < _RATION_KIND_MAX; k++)
                log_rationed(r, k, rationed[k]);
        int e = writer_write(r, w, r->grant, grant ? r->grant_size : 0, stopping);
        if (e < 0 || lost > w->lost_said)
                writer_complain(r, w, e < 0 ? e : -ENOBUFS, lost, w->batch.n);

        pthread_mutex_lock(&r->lock);
        r->n_kept -= MIN(r->n_kept, before - MIN(before, w->batch.n));
        if (grant) {
                r->grant_result = e;
                r->grant_state = r->grant_abandoned ? GRANT_IDLE : GRANT_DONE;
                r->grant_abandoned = false;
                (void) pthread_cond_signal(&r->answer);
        }
}

static void *writer_run(void *userdata) {
        Receipts *r = userdata;
        Writer w = {};
        bool last = false;

        pthread_mutex_lock(&r->lock);
        while (!last) {
                writer_wait(r, &w);
                last = r->stopping;
                writer_turn(r, &w);
        }
        if (r->lost + w.batch.n > 0)
                log_error("session %s: %llu receipts are lost: they could not be written", r->session,
                          (unsigned long long) (r->lost + w.batch.n));
        pthread_mutex_unlock(&r->lock);
        spool_batch_done(&w.batch);
        return NULL;
}

static int start_thread(Receipts *r) {
        sigset_t all, old;

        /* Signals are the loop's. */
        sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &old);
        int e = pthread_create(&r->thread, NULL, writer_run, r);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        r->running = e == 0;
        return -e;
}

int receipts_new(const char *session, int fd, Receipts **ret) {
        _cleanup_close_ int spool = fd;
        pthread_condattr_t monotonic;
        Receipts *r = calloc(1, sizeof(Receipts));

        if (!r)
                return -ENOMEM;
        r->session = session;
        r->file.fd = r->failed = -EBADF;
        (void) pthread_mutex_init(&r->lock, NULL);
        (void) pthread_condattr_init(&monotonic);
        (void) pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        (void) pthread_cond_init(&r->wake, &monotonic);
        (void) pthread_cond_init(&r->answer, &monotonic);
        (void) pthread_condattr_destroy(&monotonic);

        if (spool >= 0) {
                spool_file_init(&r->file, TAKE_FD(spool));
                r->failed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
                int e = r->failed < 0 ? negative_errno() : start_thread(r);
                if (e < 0) {
                        receipts_free(r);
                        return e;
                }
        }
        *ret = r;
        return 0;
}

Receipts *receipts_free(Receipts *r) {
        if (!r)
                return NULL;
        if (r->running) {
                pthread_mutex_lock(&r->lock);
                r->stopping = true;
                (void) pthread_cond_signal(&r->wake);
                pthread_mutex_unlock(&r->lock);
                (void) pthread_join(r->thread, NULL);
        }
        sd_event_source_disable_unref(r->failed_io);
        r->failed = safe_close(r->failed);
        r->file.fd = safe_close(r->file.fd);
        spool_batch_done(&r->pending);
        (void) pthread_cond_destroy(&r->wake);
        (void) pthread_cond_destroy(&r->answer);
        (void) pthread_mutex_destroy(&r->lock);
        return mfree(r);
}

static int on_failed(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events, void *userdata) {
        Receipts *r = userdata;
        uint64_t n;

        if (read(fd, &n, sizeof(n)) == sizeof(n))
                r->failed_handler(r->failed_userdata);
        return 0;
}

int receipts_watch(Receipts *r, sd_event *event, void (*handler)(void *userdata), void *userdata) {
        r->failed_handler = handler;
        r->failed_userdata = userdata;
        return r->failed < 0 ? 0 : sd_event_add_io(event, &r->failed_io, r->failed, EPOLLIN, on_failed, r);
}

static RationKind ration_of(const Receipt *receipt) {
        if (receipt->outcome == RECEIPT_DENIED)
                return RATION_DENIED;
        return receipt->reach == RECEIPT_TURNED_AWAY ? RATION_TURNED_AWAY : receipt->reach == RECEIPT_UNSENT ? RATION_UNSENT : _RATION_KIND_INVALID;
}

/* With the lock held: false when this call is only counted. */
static bool ration_take(Receipts *r, RationKind kind, usec_t started, uint64_t *ret_unrecorded) {
        static const struct {
                usec_t each, ahead;
        } rules[_RATION_KIND_MAX] = {
                [RATION_DENIED] = {USEC_PER_MINUTE, 0},
                [RATION_TURNED_AWAY] = {IDLE_RECEIPT_USEC, (IDLE_RECEIPTS_BURST - 1) * IDLE_RECEIPT_USEC},
                [RATION_UNSENT] = {IDLE_RECEIPT_USEC, (IDLE_RECEIPTS_BURST - 1) * IDLE_RECEIPT_USEC},
        };
        Ration *k = &r->rations[kind];

        if (k->spent_until > started + rules[kind].ahead) {
                k->unrecorded++;
                if (k->unlogged++ == 0) {
                        k->log_at = MIN(k->spent_until, started + USEC_PER_MINUTE);
                        (void) pthread_cond_signal(&r->wake);
                }
                return false;
        }
        k->spent_until = MAX(k->spent_until, started) + rules[kind].each;
        *ret_unrecorded = k->unrecorded;
        k->unrecorded = 0;
        return true;
}

bool receipts_add(Receipts *r, const Receipt *receipt) {
        usec_t now = now_monotonic();
        uint64_t unrecorded = 0;
        _cleanup_free_ char *payload = NULL;
        size_t size = 0;

        RationKind kind = ration_of(receipt);
        if (kind >= 0) {
                pthread_mutex_lock(&r->lock);
                bool due = ration_take(r, kind, receipt->started, &unrecorded);
                pthread_mutex_unlock(&r->lock);
                if (!due)
                        return false;
        }
        int e = receipt_format(receipt, r->session, now_realtime(), now > receipt->started ? now - receipt->started : 0, unrecorded,
                               &payload, &size);

        pthread_mutex_lock(&r->lock);
        bool wake = false;
        if (e >= 0)
                e = !r->running || size > SPOOL_PAYLOAD_MAX || r->n_kept >= SPOOL_QUEUE_MAX ?
                            -ENOBUFS :
                            spool_batch_add(&r->pending, SPOOL_RECEIPT, payload, size);
        if (e < 0)
                r->lost++;
        else {
                r->n_kept++;
                if (r->pending.n == 1)
                        r->pending_since = now;
                wake = r->pending.n == 1 || r->pending.n == GATHER_MAX;
        }
        pthread_mutex_unlock(&r->lock);
        if (wake) /* not before: it would only wait for the lock */
                (void) pthread_cond_signal(&r->wake);
        return e >= 0;
}

/* With the lock held: asks the writer and waits for what it says. */
static int grant_wait(Receipts *r) {
        usec_t limit = now_monotonic() + GRANT_WAIT_USEC;

        r->grant_state = GRANT_WANTED;
        (void) pthread_cond_signal(&r->wake);
        while (r->grant_state != GRANT_DONE && now_monotonic() < limit)
                wait_until(r, &r->answer, limit);
        if (r->grant_state == GRANT_DONE) {
                r->grant_state = GRANT_IDLE;
                return r->grant_result;
        }
        r->grant_abandoned = true;
        return -ETIMEDOUT;
}

int receipts_grant_used(Receipts *r, const char *grant_id, const char *host) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *payload = NULL;
        size_t size;

        if (!r->running)
                return -EBADF;
        json_open_object(&w, NULL);
        json_add_u64(&w, "used", now_realtime());
        json_add_string(&w, "session", r->session);
        json_add_string(&w, "grant", grant_id);
        json_add_string(&w, "host", host);
        json_close_object(&w);
        int e = json_writer_finish(&w, &payload, &size);
        if (e < 0)
                return e;
        if (size > SPOOL_PAYLOAD_MAX)
                return -EMSGSIZE;

        pthread_mutex_lock(&r->lock);
        if (r->grant_state != GRANT_IDLE)
                e = -EBUSY; /* a disk that does not answer still holds the last one */
        else {
                spool_encode(SPOOL_GRANT_USED, payload, size, r->grant);
                r->grant_size = SPOOL_HEADER_SIZE + size;
                e = grant_wait(r);
        }
        pthread_mutex_unlock(&r->lock);
        return e;
}
