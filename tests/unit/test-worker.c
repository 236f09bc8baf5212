/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "basic/fd.h"
#include "errandd/worker.h"
#include "test.h"

#define LONG_USEC (10 * USEC_PER_SEC)

/* A work that hangs until somebody writes to its pipe. */
typedef struct Thing {
        int gate; /* -EBADF: none */
        unsigned number;
        atomic_bool begun, ran, freed;
        bool done;
} Thing;

static unsigned order[8], n_order;

static void run(void *data) {
        Thing *t = data;
        char c;

        atomic_store(&t->begun, true);
        if (t->gate >= 0)
                (void) !read(t->gate, &c, 1);
        atomic_store(&t->ran, true);
}

static void on_done(void *data) {
        Thing *t = data;

        t->done = true;
        order[n_order++] = t->number;
}

static void on_free(void *data) {
        atomic_store(&((Thing *) data)->freed, true);
}

static const WorkClass class = {.run = run, .done = on_done, .free = on_free};

static int on_turn(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        (*(unsigned *) userdata)++;
        return 0;
}

static void test_order(void) {
        Thing things[3] = {{.gate = -EBADF, .number = 1}, {.gate = -EBADF, .number = 2}, {.gate = -EBADF, .number = 3}};
        sd_event *event;
        Worker *w;

        n_order = 0;
        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(worker_new(event, "test", 3, &w), 0);
        for (size_t i = 0; i < 3; i++)
                CHECK_INT(worker_do(w, &class, &things[i], NULL), 0);
        while (!things[2].done)
                CHECK(sd_event_run(event, LONG_USEC) > 0);
        CHECK(n_order == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3);
        CHECK(things[0].freed && things[1].freed && things[2].freed);
        worker_free(w);
        sd_event_unref(event);
}

static void test_hanging(void) {
        Thing hangs = {.number = 1}, behind = {.gate = -EBADF, .number = 2}, given_up = {.gate = -EBADF, .number = 3}, more = {.gate = -EBADF};
        unsigned turns = 0;
        sd_event *event;
        Work *work;
        int fds[2];
        Worker *w;

        n_order = 0;
        CHECK(pipe2(fds, O_CLOEXEC) == 0);
        hangs.gate = fds[0];
        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(worker_new(event, "test", 3, &w), 0);
        CHECK_INT(worker_do(w, &class, &hangs, NULL), 0);
        CHECK_INT(worker_do(w, &class, &behind, NULL), 0);
        CHECK_INT(worker_do(w, &class, &given_up, &work), 0);
        CHECK_INT(worker_do(w, &class, &more, NULL), -EBUSY); /* and is not taken */
        work_cancel(work);
        /* The loop goes on meanwhile. */
        CHECK(sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, 0, 1, on_turn, &turns) >= 0);
        while (turns == 0)
                CHECK(sd_event_run(event, LONG_USEC) > 0);
        CHECK_INT(worker_wait(w, 1), -ETIMEDOUT);
        CHECK(!hangs.done && !atomic_load(&behind.begun));
        CHECK(write(fds[1], "x", 1) == 1);
        CHECK_INT(worker_wait(w, LONG_USEC), 0);
        CHECK(hangs.done && behind.done && n_order == 2);
        CHECK(!given_up.done && given_up.freed && !atomic_load(&given_up.begun));
        worker_free(w);
        sd_event_unref(event);
        safe_close(fds[0]);
        safe_close(fds[1]);
}

static Worker *followed;
static Thing following = {.gate = -EBADF};

static void on_done_follow(_unused_ void *data) {
        CHECK_INT(worker_do(followed, &class, &following, NULL), 0);
}

static void test_following(void) {
        static const WorkClass first_class = {.run = run, .done = on_done_follow, .free = on_free};
        Thing first = {.gate = -EBADF};
        sd_event *event;

        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(worker_new(event, "test", 3, &followed), 0);
        CHECK_INT(worker_do(followed, &first_class, &first, NULL), 0);
        CHECK_INT(worker_wait(followed, LONG_USEC), 0);
        CHECK(first.freed && following.done && following.freed);
        worker_free(followed);
        sd_event_unref(event);
}

/* Its end is not waited for; what comes of it goes by itself. */
static void test_left(void) {
        Thing hangs = {}, behind = {.gate = -EBADF};
        sd_event *event;
        int fds[2];
        Worker *w;

        CHECK(pipe2(fds, O_CLOEXEC) == 0);
        hangs.gate = fds[0];
        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(worker_new(event, "test", 3, &w), 0);
        CHECK_INT(worker_do(w, &class, &hangs, NULL), 0);
        CHECK_INT(worker_do(w, &class, &behind, NULL), 0);
        while (!atomic_load(&hangs.begun))
                usleep(1000);
        worker_free(w);
        sd_event_unref(event);
        CHECK(write(fds[1], "x", 1) == 1);
        while (!atomic_load(&behind.freed))
                usleep(1000);
        CHECK(!hangs.done && !behind.done && !atomic_load(&behind.begun));
        safe_close(fds[0]);
        safe_close(fds[1]);
}

int main(void) {
        RUN(test_order, "works are done in their order, and heard of in it");
        RUN(test_hanging, "T020: one that hangs keeps the loop from nothing; what is behind it waits, and no more than so many");
        RUN(test_following, "what follows from a work is waited for, too");
        RUN(test_left, "a worker is left with one that hangs, and nothing of it is lost");
        return TEST_END();
}
