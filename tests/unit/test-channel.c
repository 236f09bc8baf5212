/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What becomes of a request: it is answered, or dropped, and either once. */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/channel.h"
#include "test.h"

typedef struct Asked {
        unsigned replies, drops;
        char problem[64];
} Asked;

typedef struct World {
        sd_event *event;
        Channel *channel;
        int other;
        bool gone;
} World;

static void on_reply(_unused_ Message *m, const char *problem, void *userdata) {
        Asked *a = userdata;

        a->replies++;
        (void) snprintf(a->problem, sizeof(a->problem), "%s", problem ?: "");
}

static void on_drop(void *userdata) {
        ((Asked *) userdata)->drops++;
}

static void on_gone(void *userdata) {
        World *w = userdata;

        w->gone = true;
        w->channel = channel_free(w->channel);
}

static void world_open(World *w) {
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        CHECK_INT(sd_event_new(&w->event), 0);
        w->other = pair[1];
        CHECK_INT(channel_new(w->event, pair[0], &(ChannelHandler){.gone = on_gone, .userdata = w}, &w->channel), 0);
}

static void world_close(World *w) {
        channel_free(w->channel);
        safe_close(w->other);
        sd_event_unref(w->event);
}

static void ask(World *w, Asked *a) {
        _cleanup_(json_writer_done) JsonWriter j = {};

        channel_open(w->channel, &j, "status");
        CHECK_INT(channel_send_owned(w->channel, &j, NULL, 0, on_reply, on_drop, a), 0);
}

static void answer_next(World *w, uint64_t serial) {
        _cleanup_(json_writer_done) JsonWriter j = {};

        message_open(&j, "status");
        json_add_u64(&j, "serial", serial);
        CHECK_INT(message_send(w->other, &j, NULL, 0), 0);
        CHECK(sd_event_run(w->event, 0) > 0);
}

static void test_dropped(void) {
        Asked first = {}, second = {};
        World w = {};

        world_open(&w);
        ask(&w, &first);
        ask(&w, &second);
        answer_next(&w, 1);
        w.channel = channel_free(w.channel);
        world_close(&w);
        CHECK_INT(first.replies, 1);
        CHECK_INT(first.drops, 0);
        CHECK_INT(second.replies, 0);
        CHECK_INT(second.drops, 1);
}

static void test_gone(void) {
        Asked a = {};
        World w = {};

        world_open(&w);
        ask(&w, &a);
        w.other = safe_close(w.other);
        CHECK(sd_event_run(w.event, 0) > 0);
        CHECK(w.gone);
        world_close(&w);
        CHECK_INT(a.replies, 1);
        CHECK_INT(a.drops, 0);
        CHECK_STR(a.problem, "it ended before it had answered");
}

static void test_unsent(void) {
        _cleanup_(json_writer_done) JsonWriter j = {};
        Asked a = {};
        World w = {};

        world_open(&w);
        w.other = safe_close(w.other);
        channel_open(w.channel, &j, "status");
        CHECK(channel_send_owned(w.channel, &j, NULL, 0, on_reply, on_drop, &a) < 0);
        world_close(&w);
        CHECK_INT(a.replies + a.drops, 0);
}

#define STRAYS 1000U

/* Whoever is at the other end may be the payload's account, and the log is everybody's. */
static void test_strays(void) {
        int log = memfd_create("log", MFD_CLOEXEC), own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        unsigned lines = 0;
        World w = {};
        char c;

        world_open(&w);
        CHECK(log >= 0 && own >= 0 && dup2(log, STDERR_FILENO) >= 0);
        for (unsigned i = 0; i < STRAYS; i++)
                answer_next(&w, STRAYS + i);
        CHECK(dup2(own, STDERR_FILENO) >= 0 && lseek(log, 0, SEEK_SET) == 0);
        while (read(log, &c, 1) == 1)
                lines += c == '\n';
        CHECK(lines > 0 && lines <= 10);
        safe_close(log);
        safe_close(own);
        world_close(&w);
}

int main(void) {
        RUN(test_dropped, "what is not answered when its channel is freed is dropped");
        RUN(test_gone, "when the connection goes the request is answered, and not dropped");
        RUN(test_unsent, "what was not sent is neither answered nor dropped");
        RUN(test_strays, "C204: answers that nobody waits for do not fill the log");
        return TEST_END();
}
