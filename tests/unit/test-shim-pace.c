/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/conversation.h"
#include "errandd/shim-pace.h"
#include "test.h"

#define MORE 6U /* than may be told at once */

/* Of each kind, what followers were told. */
static unsigned told[_UPDATE_KIND_MAX];

static void on_update(const Update *u, _unused_ void *userdata) {
        told[u->kind]++;
}

static void on_turn(_unused_ bool given, _unused_ void *userdata) {
}

typedef struct World {
        sd_event *event;
        char directory[32];
        int place, shim; /* the shim's end */
        Turns turns;
        ShimClient *client;
        Conversation *conversation;
} World;

static void settle(World *w) {
        while (sd_event_run(w->event, 0) > 0)
                ;
}

static void say(World *w, const char *text) {
        CHECK(send(w->shim, text, strlen(text), MSG_NOSIGNAL) == (ssize_t) strlen(text));
        settle(w);
}

static void tell(World *w, const char *kind, const char *fields) {
        char text[256];

        (void) snprintf(text, sizeof(text), "{\"v\":1,\"type\":\"update\",\"kind\":\"%s\",\"fields\":{%s}}", kind, fields);
        say(w, text);
}

/* Its agent is in turn 1. */
static void begin(World *w) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const ConversationHandler handler = {.update = on_update, .turn = on_turn};

        *w = (World){.directory = "/tmp/test-shim-pace-XXXXXX"};
        memset(told, 0, sizeof(told));
        CHECK(sd_event_new(&w->event) >= 0 && mkdtemp(w->directory));
        w->place = open(w->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_close_ int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/shim", w->directory);
        CHECK(listener >= 0 && bind(listener, (struct sockaddr *) &address, sizeof(address)) == 0 && listen(listener, 1) == 0);
        CHECK_INT(shim_client_new(w->event, w->place, "shim", getuid(), NULL, NULL, &w->client), 0);
        w->shim = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        CHECK(w->shim >= 0 && unlink(address.sun_path) == 0);
        turns_limit(&w->turns, 1, 8);
        CHECK_INT(conversation_new(w->event, w->client, &w->turns, "a1", 1000, false, false, &handler, &w->conversation), 0);
        say(w, "{\"v\":1,\"type\":\"status\",\"serial\":1,\"state\":\"running\",\"conversation\":{\"ready\":true,\"turn\":1,\"queued\":[],\"last\":1}}");
}

static void end(World *w) {
        conversation_free(w->conversation, NULL);
        shim_client_free(w->client);
        safe_close(w->shim);
        safe_close(w->place);
        CHECK_INT(rmdir(w->directory), 0);
        sd_event_unref(w->event);
}

static void test_repeated(void) {
        World w;

        begin(&w);
        for (unsigned i = 0; i < 300; i++) {
                tell(&w, "ready", "");
                tell(&w, "answered", "\"question\":1,\"option\":\"\"");
        }
        tell(&w, "question", "\"question\":1,\"title\":\"may I\",\"options\":\"\"");
        tell(&w, "answered", "\"question\":1,\"option\":\"\"");
        tell(&w, "answered", "\"question\":1,\"option\":\"\"");
        CHECK_INT(told[UPDATE_READY], 1);
        CHECK_INT(told[UPDATE_QUESTION], 1);
        CHECK_INT(told[UPDATE_ANSWERED], 1);
        end(&w);
}

static void test_flood(void) {
        World w;

        begin(&w);
        for (unsigned i = 0; i < SHIM_PACE_BURST + MORE; i++)
                tell(&w, "missed", "\"count\":1");
        tell(&w, "turn-ended", "\"prompt\":1,\"reason\":\"end_turn\"");
        CHECK(told[UPDATE_MISSED] > SHIM_PACE_BURST / 2 && told[UPDATE_TURN_ENDED] == 0);
        while (told[UPDATE_TURN_ENDED] == 0)
                CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
        CHECK_INT(told[UPDATE_MISSED], SHIM_PACE_BURST + MORE);
        end(&w);
}

/* Text is not held back for its number: what a follower does not read is left out for it. */
static void test_text(void) {
        World w;

        begin(&w);
        for (unsigned i = 0; i < 10 * SHIM_PACE_BURST; i++)
                tell(&w, "message", "\"text\":\"word\"");
        CHECK_INT(told[UPDATE_MESSAGE], 10 * SHIM_PACE_BURST);
        end(&w);
}

static void test_rate(void) {
        ShimPace p = {};
        usec_t now = USEC_PER_SEC;

        for (unsigned i = 0; i < SHIM_PACE_BURST; i++)
                CHECK_INT(shim_pace_spend(&p, 0, now), 0);
        CHECK_INT(shim_pace_spend(&p, 0, now), SHIM_PACE_USEC);
        CHECK_INT(shim_pace_spend(&p, 0, now + 2 * SHIM_PACE_USEC), 0);
        CHECK_INT(shim_pace_spend(&p, 10 * 1024, now + 2 * SHIM_PACE_USEC), 11 * SHIM_PACE_USEC);
        now += USEC_PER_SEC * 3600; /* what was not used is not saved up */
        for (unsigned i = 0; i < SHIM_PACE_BURST; i++)
                CHECK_INT(shim_pace_spend(&p, 0, now), 0);
        CHECK(shim_pace_spend(&p, 0, now) > 0);
        shim_pace_credit(&p, 2);
        CHECK_INT(shim_pace_spend(&p, 0, now), 0);
        p = (ShimPace){};
        for (unsigned i = 0; i < 10 * SHIM_PACE_BURST; i++) { /* what was asked for has no bound */
                shim_pace_credit(&p, 3);
                for (unsigned j = 0; j < 3; j++)
                        CHECK_INT(shim_pace_spend(&p, 0, now), 0);
        }
}

int main(void) {
        log_setup("test", LOG_LEVEL_ERROR - 1);
        RUN(test_repeated, "C204: what a shim repeats is no news");
        RUN(test_flood, "C204: a shim that floods has followers told at a pace, and all of it");
        RUN(test_text, "what an agent writes is told as it comes");
        RUN(test_rate, "the pace counts signals and their size");
        return TEST_END();
}
