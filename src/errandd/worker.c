/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "basic/thread.h"
#include "errandd/worker.h"

struct Work {
        Work *next;
        const WorkClass *class;
        void *data;
        atomic_bool cancelled; /* set by the loop, read by both */
};

typedef struct Queue {
        Work *first, **end;
} Queue;

struct Worker {
        pthread_mutex_t lock; /* over all of this but the loop's own */
        pthread_cond_t wake, idle;
        Queue waiting, finished;
        Work *current;
        unsigned n, max; /* of those that are not finished */
        unsigned users;  /* the loop and the thread: the last one frees */
        bool ending;
        int told; /* an eventfd: some are finished */
        char name[16];

        bool running; /* the loop's own */
        sd_event_source *io;
};

static void queue_add(Queue *q, Work *work) {
        work->next = NULL;
        *q->end = work;
        q->end = &work->next;
}

static Work *queue_take(Queue *q) {
        Work *work = q->first;

        if (work) {
                q->first = work->next;
                if (!q->first)
                        q->end = &q->first;
        }
        return work;
}

static void work_free(Work *work) {
        if (work->class->free)
                work->class->free(work->data);
        free(work);
}

/* With the lock held, which goes with it. */
static void unref_unlock(Worker *w) {
        bool last = --w->users == 0;

        (void) pthread_mutex_unlock(&w->lock);
        if (!last)
                return;
        for (Work *work; (work = queue_take(&w->waiting)) || (work = queue_take(&w->finished));)
                work_free(work);
        (void) pthread_cond_destroy(&w->wake);
        (void) pthread_cond_destroy(&w->idle);
        (void) pthread_mutex_destroy(&w->lock);
        safe_close(w->told);
        free(w);
}

static void do_one(Worker *w) {
        Work *work = w->current = queue_take(&w->waiting);

        if (!atomic_load(&work->cancelled)) {
                (void) pthread_mutex_unlock(&w->lock);
                work->class->run(work->data);
                (void) pthread_mutex_lock(&w->lock);
        }
        w->current = NULL;
        w->n--;
        queue_add(&w->finished, work);
        (void) !write(w->told, &(uint64_t) {1}, sizeof(uint64_t));
        if (w->n == 0)
                (void) pthread_cond_broadcast(&w->idle);
}

static void *run(void *userdata) {
        Worker *w = userdata;

        (void) pthread_setname_np(pthread_self(), w->name);
        (void) pthread_mutex_lock(&w->lock);
        while (!w->ending) {
                if (w->waiting.first)
                        do_one(w);
                else
                        (void) pthread_cond_wait(&w->wake, &w->lock);
        }
        unref_unlock(w);
        return NULL;
}

static void hear(Worker *w) {
        for (;;) {
                (void) pthread_mutex_lock(&w->lock);
                Work *work = queue_take(&w->finished);
                bool heard = work && !atomic_load(&work->cancelled);
                (void) pthread_mutex_unlock(&w->lock);
                if (!work)
                        return;
                if (heard && work->class->done)
                        work->class->done(work->data);
                work_free(work);
        }
}

static int on_told(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events, void *userdata) {
        uint64_t n;

        (void) !read(fd, &n, sizeof(n));
        hear(userdata);
        return 0;
}

int worker_new(sd_event *event, const char *name, unsigned max, Worker **ret) {
        pthread_condattr_t clock;
        Worker *w = calloc(1, sizeof(Worker));

        if (!w)
                return -ENOMEM;
        *w = (Worker){.max = max, .users = 1};
        w->waiting.end = &w->waiting.first;
        w->finished.end = &w->finished.first;
        (void) snprintf(w->name, sizeof(w->name), "%s", name);
        (void) pthread_mutex_init(&w->lock, NULL);
        (void) pthread_condattr_init(&clock);
        (void) pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        (void) pthread_cond_init(&w->wake, NULL);
        (void) pthread_cond_init(&w->idle, &clock);
        (void) pthread_condattr_destroy(&clock);
        w->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        int r = w->told < 0 ? -errno : sd_event_add_io(event, &w->io, w->told, EPOLLIN, on_told, w);
        if (r < 0) {
                worker_free(w);
                return r;
        }
        *ret = w;
        return 0;
}

Worker *worker_free(Worker *w) {
        if (!w)
                return NULL;
        sd_event_source_disable_unref(w->io);
        (void) pthread_mutex_lock(&w->lock);
        w->ending = true;
        (void) pthread_cond_broadcast(&w->wake);
        unref_unlock(w);
        return NULL;
}

static int begin(Worker *w) {
        w->users++;
        int r = thread_start(run, w, 0);
        if (r < 0)
                w->users--;
        w->running = r >= 0;
        return r;
}

int worker_do(Worker *w, const WorkClass *class, void *data, Work **ret) {
        Work *work = calloc(1, sizeof(Work));

        if (!work)
                return -ENOMEM;
        *work = (Work){.class = class, .data = data};
        (void) pthread_mutex_lock(&w->lock);
        int r = w->n >= w->max ? -EBUSY : w->running ? 0 : begin(w);
        if (r >= 0) {
                queue_add(&w->waiting, work);
                w->n++;
                (void) pthread_cond_signal(&w->wake);
        }
        (void) pthread_mutex_unlock(&w->lock);
        if (r < 0) {
                free(work);
                return r;
        }
        if (ret)
                *ret = work;
        return 0;
}

/* Only the loop takes it off the list of those that are finished, so it is there still. */
Work *work_cancel(Work *work) {
        if (work)
                atomic_store(&work->cancelled, true);
        return NULL;
}

int worker_wait(Worker *w, usec_t patience_usec) {
        usec_t until = now_monotonic() + patience_usec;
        const struct timespec at = {.tv_sec = (time_t) (until / USEC_PER_SEC), .tv_nsec = (long) (until % USEC_PER_SEC * 1000)};
        int r = 0;

        (void) pthread_mutex_lock(&w->lock);
        while (r == 0 && (w->n > 0 || w->finished.first)) {
                while (w->n > 0 && r == 0)
                        r = pthread_cond_timedwait(&w->idle, &w->lock, &at);
                (void) pthread_mutex_unlock(&w->lock);
                hear(w);
                (void) pthread_mutex_lock(&w->lock);
        }
        r = w->n > 0 ? -ETIMEDOUT : 0;
        (void) pthread_mutex_unlock(&w->lock);
        return r;
}
