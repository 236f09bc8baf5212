/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */
#include "basic/fd.h"
#include "basic/text.h"
#include "shared/message.h"
#include "shim/conversation.h"
#include "shim/limits.h"
#include "shim/speech.h"
#include "shim/backlog.h"
#include "shim/watcher.h"
#include "test.h"

/* An agent whose both ends are here. */
typedef struct World {
        sd_event *event;
        SecretList *secrets;
        Transcript *transcript;
        Conversation *conversation;
        int to, from; /* the agent's input, to read, and its output, to write */
        char told[4096]; /* all updates */
        char failure[512];
        bool ended;
} World;

static void on_update(JsonWriter *w, _unused_ bool keep, void *userdata) {
        _cleanup_free_ char *text = NULL;
        World *world = userdata;
        size_t size, at = strlen(world->told);

        if (message_close(w, &text, &size) == 0)
                (void) snprintf(world->told + at, sizeof(world->told) - at, "%s\n", text + STRLEN("{\"v\":1,\"type\":\"update\",\"kind\":"));
}

static void on_failed(const char *text, void *userdata) {
        World *world = userdata;

        (void) snprintf(world->failure, sizeof(world->failure), "%s", text);
}

static void on_ended(void *userdata) {
        World *world = userdata;

        world->ended = true;
}

static SecretList *make_secrets(const char *data, size_t size) {
        SecretList *list = NULL;

        _cleanup_close_ int fd = memfd_new_sealed("secrets", data, size);
        CHECK(fd >= 0);
        CHECK_INT(secret_list_read(fd, &list), 0);
        return list;
}

/* abort: how long the agent has to end an interrupted turn. */
static World *world_new(usec_t abort) {
        const ConversationOptions options = {.startup_usec = USEC_PER_MINUTE, .question_usec = USEC_PER_MINUTE, .abort_usec = abort, .directory = "/p"};
        World *w = calloc(1, sizeof(World));
        int input[2], output[2];

        CHECK(w && sd_event_new(&w->event) >= 0);
        int log = memfd_create("transcript", MFD_CLOEXEC);
        CHECK(log >= 0 && fcntl(log, F_SETFL, O_APPEND) == 0);
        CHECK_INT(transcript_new(log, TRANSCRIPT_BYTES_MAX, &w->transcript), 0);
        CHECK(pipe2(input, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(output, O_CLOEXEC | O_NONBLOCK) == 0);
        w->secrets = make_secrets("", 0);
        const ConversationLinks links = {.updates = {on_update, w}, .failed = on_failed, .ended = on_ended, .userdata = w};
        CHECK_INT(conversation_new(w->event, w->secrets, w->transcript, &options, &links, &w->conversation), 0);
        CHECK_INT(conversation_open(w->conversation, input[1], output[0]), 0);
        w->to = input[0];
        w->from = output[1];
        return w;
}

static void world_free(World *w) {
        conversation_free(w->conversation);
        transcript_free(w->transcript);
        secret_list_free(w->secrets);
        sd_event_unref(w->event);
        safe_close(w->to);
        safe_close(w->from);
        free(w);
}

/* Until the agent has something to read, which is compared. */
static void expect(World *w, const char *part) {
        char text[8192];

        ssize_t n = read(w->to, text, sizeof(text) - 1);
        CHECK(n > 0);
        text[n] = 0;
        CHECK(strstr(text, part));
}

static void say(World *w, const char *line) {
        CHECK(write(w->from, line, strlen(line)) == (ssize_t) strlen(line));
        CHECK(sd_event_run(w->event, UINT64_MAX) > 0);
}

static World *ready_for(usec_t abort) {
        World *w = world_new(abort);

        conversation_begin(w->conversation);
        CHECK_STR(conversation_awaits(w->conversation), "initialize");
        expect(w, "\"method\":\"initialize\"");
        say(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}\n");
        CHECK_STR(conversation_awaits(w->conversation), "session/new");
        expect(w, "\"method\":\"session/new\",\"params\":{\"cwd\":\"/p\",\"mcpServers\":[]}");
        say(w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"s\"}}\n");
        CHECK(!conversation_awaits(w->conversation));
        CHECK_STR(w->told, "\"ready\",\"fields\":{\"agent\":\"\",\"version\":\"\"}}\n");
        w->told[0] = 0;
        return w;
}

static World *ready(void) {
        return ready_for(USEC_PER_MINUTE);
}

static void begin_turn(World *w, uint64_t number) {
        const char *problem = NULL;

        CHECK_INT(conversation_prompt(w->conversation, number, 0, "hello", &problem), 0);
        CHECK_INT(conversation_turn(w->conversation, &problem), 0);
        expect(w, "\"method\":\"session/prompt\"");
}

static void test_turn(void) {
        World *w = ready();

        begin_turn(w, 5);
        say(w, "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"stopReason\":\"end_turn\"}}\n"); /* to nothing */
        say(w, "{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{\"stopReason\":\"end_turn\"}}\n");
        say(w, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}\n");
        say(w, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"refusal\"}}\n");
        CHECK_STR(w->told, "\"queued\",\"fields\":{\"prompt\":5}}\n\"turn-started\",\"fields\":{\"prompt\":5}}\n"
                           "\"turn-ended\",\"fields\":{\"prompt\":5,\"reason\":\"end_turn\"}}\n");
        world_free(w);
}

static void test_interrupted_error(void) {
        const char *problem = NULL;
        World *w = ready();

        begin_turn(w, 1);
        CHECK_INT(conversation_interrupt(w->conversation, &problem), 0);
        expect(w, "\"method\":\"session/cancel\"");
        say(w, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32603,\"message\":\"aborted\"}}\n");
        CHECK(strstr(w->told, "\"turn-ended\",\"fields\":{\"prompt\":1,\"reason\":\"cancelled\"}}"));
        world_free(w);
}

static void test_abort(void) {
        const char *problem = NULL;
        World *w = ready_for(10 * USEC_PER_MSEC);

        begin_turn(w, 1);
        CHECK_INT(conversation_interrupt(w->conversation, &problem), 0);
        CHECK_INT(conversation_interrupt(w->conversation, &problem), 0);
        while (!w->failure[0])
                CHECK(sd_event_run(w->event, UINT64_MAX) >= 0);
        CHECK(strstr(w->failure, "within 10 ms") && strstr(w->told, w->failure));
        CHECK_INT(conversation_prompt(w->conversation, 2, 0, "x", &problem), -EINVAL);
        CHECK_STR(problem, "the conversation is over");
        CHECK_INT(conversation_interrupt(w->conversation, &problem), -EINVAL);
        CHECK_INT(conversation_turn(w->conversation, &problem), -EINVAL);
        world_free(w);
}

static void test_output_closed(void) {
        World *w = ready_for(10 * USEC_PER_MSEC);

        begin_turn(w, 1);
        w->from = safe_close(w->from);
        while (!w->ended)
                CHECK(sd_event_run(w->event, UINT64_MAX) > 0);
        CHECK(strstr(w->told, "\"turn-ended\",\"fields\":{\"prompt\":1,\"reason\":\"error\",\"text\":\"the agent has ended\"}}"));
        CHECK(!conversation_is_open(w->conversation) && !w->failure[0]);
        while (!w->failure[0])
                CHECK(sd_event_run(w->event, UINT64_MAX) >= 0);
        CHECK_STR(w->failure, "the agent has closed its standard output and goes on");
        world_free(w);
}

static void test_input_closed(void) {
        const char *problem = NULL;
        World *w = ready();

        w->to = safe_close(w->to);
        CHECK_INT(conversation_prompt(w->conversation, 1, 0, "hello", &problem), 0);
        CHECK_INT(conversation_turn(w->conversation, &problem), 0);
        conversation_finish(w->conversation);
        CHECK(strstr(w->told, "\"turn-ended\",\"fields\":{\"prompt\":1,\"reason\":\"error\""));
        CHECK_STR(w->failure, ""); /* its end came first */
        world_free(w);
}

static void on_piece(const char *text, size_t size, void *userdata) {
        char *all = userdata;

        CHECK_INT(strlen(text), size);
        CHECK(size <= UPDATE_TEXT_MAX);
        (void) strcat(strcat(all, text), "|");
}

static void test_speech(void) {
        SecretList *list = make_secrets("sk-0123456789\0other-secret", 27);
        char *all = calloc(1, 200000), *line = NULL;
        Speech s;

        CHECK(all);
        CHECK_INT(speech_init(&s, list, on_piece, all), 0);
        CHECK_INT(speech_push(&s, "a sk-01234"), 0);
        CHECK_INT(speech_push(&s, "56789 b sk-0"), 0);
        CHECK_INT(speech_push(&s, "9 oth"), 0);
        CHECK_INT(speech_flush(&s), 0);
        CHECK_INT(speech_push(&s, "er-secret\x1b[2J\tx\n\xc2\x9b"), 0);
        CHECK_STR(all, "a |[redacted] b |sk-09 |oth|er-secret\\x1b[2J\tx\n\\xc2\\x9b|");
        /* Newlines take six bytes of a message, and a character is not cut. */
        char *big = malloc(60001);
        CHECK(big);
        memset(big, '\n', 60000);
        big[60000] = 0;
        all[0] = 0;
        CHECK_INT(speech_push(&s, big), 0);
        CHECK(strchr(all, '|') - all <= 8192);
        for (size_t i = 0; i < 60000; i += 3)
                memcpy(big + i, "\xe2\x82\xac", 3);
        all[0] = 0;
        CHECK_INT(speech_push(&s, big), 0);
        CHECK_INT((strchr(all, '|') - all) % 3, 0);
        CHECK_INT(speech_line(list, "x sk-0123456789\n\x1b", 14, &line), 0);
        CHECK_STR(line, "x [redacted]\\n");
        free(line);
        free(big);
        free(all);
        speech_done(&s);
        secret_list_free(list);
}

/* Reads all that is there: how many, and what was missed. */
static unsigned drain(int fd, uint64_t *ret_missed) {
        unsigned n = 0;

        for (;;) {
                _cleanup_(message_freep) Message *m = NULL;
                JsonObject *fields;
                uint64_t count;

                if (message_receive(fd, &m, NULL) < 0)
                        return n;
                if (json_get_object(message_object(m), "fields", &fields) >= 0 && json_get_u64(fields, "count", INT64_MAX, &count) >= 0)
                        *ret_missed += count;
                else
                        n++;
        }
}

static void test_watcher(void) {
        static const char text[] = "{\"v\":1,\"type\":\"x\"}", answer[] = "{\"v\":1,\"type\":\"answer\",\"fds\":[\"fd\"]}";
        uint64_t missed = 0;
        unsigned got = 0;
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        Watcher w = {.fd = pair[0]};
        for (unsigned i = 0; i < 100000; i++)
                CHECK_INT(watcher_send(&w, text, strlen(text), 1, false), 0);
        CHECK(watcher_waits(&w) && w.size <= UPDATES_PENDING_BYTES + 256);
        for (unsigned i = 0; i < UPDATES_PENDING_MAX + 10; i++)
                CHECK_INT(watcher_send(&w, text, strlen(text), 1, true), 0);
        while (watcher_waits(&w)) {
                got += drain(pair[1], &missed);
                CHECK_INT(watcher_flush(&w), 0);
        }
        got += drain(pair[1], &missed);
        CHECK_INT(got + missed, 100000 + UPDATES_PENDING_MAX + 10);
        CHECK(missed > 10 && w.size == 0 && w.n_kept == 0);
        /* An answer comes behind what was there before, with its descriptor. */
        while (!watcher_waits(&w))
                CHECK_INT(watcher_send(&w, text, strlen(text), 1, false), 0);
        _cleanup_close_ int fd = memfd_create("fd", MFD_CLOEXEC);
        CHECK_INT(watcher_reply(&w, answer, strlen(answer), fd), 0);
        for (bool answered = false; !answered;) {
                _cleanup_(message_freep) Message *m = NULL;
                int r = message_receive(pair[1], &m, NULL);
                CHECK(r >= 0 || r == -EAGAIN);
                answered = r >= 0 && streq(message_type(m), "answer");
                CHECK(!answered || message_peek_fd(m, "fd") >= 0);
                CHECK(!answered || !watcher_waits(&w));
                if (r < 0)
                        CHECK(watcher_waits(&w));
                CHECK_INT(watcher_flush(&w), 0);
        }
        while (!watcher_waits(&w))
                CHECK_INT(watcher_send(&w, text, strlen(text), 1, false), 0);
        int r = 0;
        for (unsigned i = 0; i <= UPDATES_PENDING_MAX && r >= 0; i++)
                r = watcher_reply(&w, text, strlen(text), fd);
        CHECK_INT(r, -ENOBUFS);
        CHECK_INT(watcher_done(&w), 1); /* answers are no updates */
        (void) drain(pair[1], &missed);
        /* Who is gone is told so by the first that cannot be sent; what it was owed counts as dropped. */
        CHECK_INT(watcher_miss(&w, 3, 3), 0);
        CHECK_INT(watcher_done(&w), 3);
        close(pair[1]);
        CHECK(watcher_send(&w, text, strlen(text), 1, true) < 0);
        close(pair[0]);
}

/* The numbers that were told, and in brackets what was missed up to which. */
static void told_after(const Backlog *b, uint64_t after, uint64_t last, char *text, size_t room) {
        int pair[2];
        size_t n = 0;

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        Watcher w = {.fd = pair[0]};
        CHECK_INT(backlog_tell(b, &w, after, last), 0);
        CHECK_INT(watcher_flush(&w), 0);
        text[0] = 0;
        for (;;) {
                _cleanup_(message_freep) Message *m = NULL;
                uint64_t count, number;
                JsonObject *fields;

                if (message_receive(pair[1], &m, NULL) < 0)
                        break;
                CHECK(json_get_u64(message_object(m), "number", INT64_MAX, &number) >= 0);
                if (json_get_object(message_object(m), "fields", &fields) >= 0 && json_get_u64(fields, "count", INT64_MAX, &count) >= 0)
                        n += (size_t) snprintf(text + n, room - n, "[%llu to %llu] ", (unsigned long long) count, (unsigned long long) number);
                else
                        n += (size_t) snprintf(text + n, room - n, "%llu ", (unsigned long long) number);
        }
        (void) watcher_done(&w);
        close(pair[0]);
        close(pair[1]);
}

static void keep(Backlog *b, uint64_t number, size_t size) {
        _cleanup_free_ char *text = malloc(size + 64);

        CHECK(text);
        int n = snprintf(text, size + 64, "{\"v\":1,\"type\":\"x\",\"number\":%llu,\"x\":\"%0*u\"}", (unsigned long long) number, (int) size, 0U);
        backlog_add(b, number, text, (size_t) n);
}

static void test_backlog(void) {
        Backlog b = {};
        char text[4096];

        told_after(&b, 0, 0, text, sizeof(text));
        CHECK_STR(text, "");
        told_after(&b, 3, 9, text, sizeof(text));
        CHECK_STR(text, "[6 to 9] ");
        keep(&b, 2, 1);
        keep(&b, 5, 1);
        keep(&b, 6, 1);
        told_after(&b, 0, 9, text, sizeof(text));
        CHECK_STR(text, "[1 to 1] 2 [2 to 4] 5 6 [3 to 9] ");
        told_after(&b, 4, 6, text, sizeof(text));
        CHECK_STR(text, "5 6 ");
        told_after(&b, 6, 6, text, sizeof(text));
        CHECK_STR(text, "");
        for (unsigned i = 7; i < 1000; i++)
                keep(&b, i, 1);
        CHECK_INT(b.n, BACKLOG_MAX);
        told_after(&b, 6, 999, text, sizeof(text));
        CHECK(strncmp(text, "[929 to 935] 936 937 ", 21) == 0);
        for (unsigned i = 1000; i < 1064; i++)
                keep(&b, i, 16000);
        CHECK(b.size <= BACKLOG_BYTES && b.n >= 15);
        keep(&b, 1064, BACKLOG_BYTES);
        told_after(&b, 1060, 1064, text, sizeof(text));
        CHECK_STR(text, "1061 1062 1063 [1 to 1064] ");
        backlog_done(&b);
        CHECK(b.n == 0 && b.size == 0);
}

int main(void) {
        (void) signal(SIGPIPE, SIG_IGN);
        RUN(test_turn, "a turn ends with the answer to its own request, once");
        RUN(test_interrupted_error, "an error that an interrupt led to is its end");
        RUN(test_abort, "S046: an interrupt that is not heeded ends the conversation");
        RUN(test_output_closed, "an agent that closes its output ends what runs, and is stopped if it goes on");
        RUN(test_input_closed, "C206: one that has closed its input is given the time to end by itself");
        RUN(test_speech, "S217: what is said in pieces is scrubbed as one text, and comes in pieces that fit");
        RUN(test_backlog, "C200: what was told last is told again from a number on, and what is not there any more is counted");
        RUN(test_watcher, "C190: who does not read costs a bounded memory, and is told what it missed");
        return TEST_END();
}
