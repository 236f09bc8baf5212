/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/conversation.h"
#include "shared/message.h"
#include "test.h"

/* A shim that says what it is told to, and whatever else comes to its mind, in the same event loop as errandd's side. */

static sd_event *event;
static Turns turns;
static ShimClient *client;
static Conversation *conversation;
static char directory[] = "/tmp/test-conversation-XXXXXX";
static int place = -EBADF, shim = -EBADF;
static char told[8192]; /* what followers were told */
static char answers[1024];
static bool given; /* a turn, by the record */

static void on_update(const Update *u, _unused_ void *userdata) {
        size_t n = strlen(told);

        n += (size_t) snprintf(told + n, sizeof(told) - n, "%s", update_kind_to_string(u->kind));
        for (size_t i = 0; i < u->n_fields && n < sizeof(told) - 64; i++)
                n += u->fields[i].text ? (size_t) snprintf(told + n, sizeof(told) - n, " %.20s", u->fields[i].text)
                                       : (size_t) snprintf(told + n, sizeof(told) - n, " %llu", (unsigned long long) u->fields[i].number);
        (void) snprintf(told + n, sizeof(told) - n, "|");
}

static void on_turn(bool now, _unused_ void *userdata) {
        CHECK(given != now); /* said once */
        given = now;
}

static void on_done(_unused_ uint64_t prompt, const char *problem, void *userdata) {
        size_t n = strlen(answers);

        (void) snprintf(answers + n, sizeof(answers) - n, "%s: %s|", (const char *) userdata, problem ?: "fine");
}

static void on_gone(_unused_ void *userdata) {
        conversation = conversation_free(conversation, "gone");
}

static void settle(void) {
        while (sd_event_run(event, 0) > 0)
                ;
}

/* The next request, with its serial. */
static uint64_t request(const char *type, Message **ret) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;
        uint64_t serial;

        settle();
        int r = message_receive(shim, &m, &problem);
        if (r < 0)
                test_fail(__FILE__, __LINE__, "no request came where \"%s\" should: %s", type, problem ?: strerror(-r));
        CHECK_STR(message_type(m), type);
        CHECK(json_get_u64(message_object(m), "serial", INT64_MAX, &serial) >= 0);
        if (ret)
                *ret = TAKE_PTR(m);
        return serial;
}

static bool quiet(void) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;

        settle();
        return message_receive(shim, &m, &problem) == -EAGAIN;
}

_printf_(1, 2) static void say(const char *format, ...) {
        char text[MESSAGE_SIZE_MAX];
        va_list ap;

        va_start(ap, format);
        int n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        CHECK(send(shim, text, (size_t) n, MSG_NOSIGNAL) == n);
        settle();
}

static void ok(uint64_t serial) {
        say("{\"v\":1,\"type\":\"ok\",\"serial\":%llu}", (unsigned long long) serial);
}

static void state(uint64_t serial, const char *conversation_text) {
        say("{\"v\":1,\"type\":\"status\",\"serial\":%llu,\"state\":\"running\",\"conversation\":%s}", (unsigned long long) serial, conversation_text);
}

static void tell(const char *kind, const char *fields) {
        say("{\"v\":1,\"type\":\"update\",\"kind\":\"%s\",\"fields\":{%s}}", kind, fields);
}

static int prompt(const char *text) {
        Fault f = {};
        int r = conversation_prompt(conversation, text, 60 * USEC_PER_SEC, true, on_done, (void *) text, &f);

        if (r < 0)
                on_done(0, f.text, (void *) text);
        fault_done(&f);
        return r;
}

static void expect(char *what, const char *wanted) {
        settle();
        if (!streq(what, wanted))
                test_fail(__FILE__, __LINE__, "\"%s\", not \"%s\"", what, wanted);
        what[0] = 0;
}

static void end(void) {
        conversation = conversation_free(conversation, NULL);
        client = shim_client_free(client);
        shim = safe_close(shim);
        told[0] = answers[0] = 0;
}

/* errandd's end and the shim's of a new connection. */
static void connect_shim(void) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/shim", directory);
        (void) unlink(address.sun_path);
        CHECK(listener >= 0 && bind(listener, (struct sockaddr *) &address, sizeof(address)) == 0 && listen(listener, 1) == 0);
        CHECK_INT(shim_client_new(event, place, "shim", getuid(), on_gone, NULL, &client), 0);
        shim = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        close(listener);
        CHECK(shim >= 0);
}

static void start(bool with_turn, const char *conversation_text) {
        end();
        turns = (Turns){};
        turns_limit(&turns, 1, 8);
        connect_shim();
        const ConversationHandler handler = {.update = on_update, .turn = on_turn};
        given = with_turn;
        CHECK_INT(conversation_new(event, client, &turns, "a1", 1000, false, with_turn, &handler, &conversation), 0);
        uint64_t serial = request("status", NULL);
        if (conversation_text)
                state(serial, conversation_text);
}

static void begin(const char *conversation_text) {
        start(false, conversation_text);
}

/* Its record says that an earlier errandd gave it a turn. */
static void begin_found(const char *conversation_text) {
        start(true, conversation_text);
}

#define FRESH "{\"ready\":true,\"turn\":0,\"queued\":[],\"last\":0}"

static void test_turn(void) {
        _cleanup_(message_freep) Message *m = NULL;
        ConversationState s;
        uint64_t number;
        char text[8] = "";

        begin(FRESH);
        CHECK(!conversation_busy(conversation));
        CHECK_INT(prompt("one"), 0);
        CHECK(conversation_busy(conversation));
        uint64_t serial = request("prompt", &m);
        CHECK(json_get_u64(message_object(m), "number", 99, &number) >= 0 && number == 1);
        CHECK(pread(message_peek_fd(m, "text"), text, sizeof(text), 0) == 3 && streq(text, "one"));
        CHECK(fcntl(message_peek_fd(m, "text"), F_GET_SEALS) & F_SEAL_WRITE);
        CHECK(quiet()); /* no turn for what is not in the queue */
        tell("queued", "\"prompt\":1");
        ok(serial);
        expect(answers, "one: fine|");
        ok(request("turn", NULL));
        conversation_state(conversation, &s);
        CHECK(s.turn && s.prompt == 1 && s.queued == 0);
        tell("turn-started", "\"prompt\":1");
        tell("message", "\"text\":\"hello\"");
        tell("turn-ended", "\"prompt\":1,\"reason\":\"end_turn\"");
        expect(told, "queued 1|turn-started 1|message hello|turn-ended 1 end_turn|");
        CHECK(!conversation_busy(conversation) && turns.running == 0 && turns.waiting == 0);
        CHECK(quiet());
        end();
}

static void test_order(void) {
        begin("{\"ready\":false,\"turn\":0,\"queued\":[],\"last\":0}");
        CHECK(prompt("a") == 0 && prompt("b") == 0);
        ok(request("prompt", NULL));
        ok(request("prompt", NULL));
        CHECK(quiet());
        tell("ready", "\"agent\":\"x\",\"version\":\"1\"");
        ok(request("turn", NULL));
        tell("turn-started", "\"prompt\":1");
        CHECK(quiet());
        tell("turn-ended", "\"prompt\":1,\"reason\":\"end_turn\"");
        uint64_t second = request("turn", NULL);
        tell("turn-started", "\"prompt\":2"); /* said before the answer */
        ok(second);
        CHECK(quiet());
        tell("turn-ended", "\"prompt\":2,\"reason\":\"cancelled\"");
        CHECK(turns.running == 0 && quiet());
        end();
}

static void test_adopted(void) {
        ConversationState s;

        /* A prompt that comes before the shim has said where it is gets its number then. */
        begin(NULL);
        CHECK_INT(prompt("early"), 0);
        CHECK(quiet());
        end();
        begin_found(NULL);
        CHECK_INT(prompt("early"), 0);
        CHECK_INT(turns.running, 1);
        state(1, "{\"ready\":true,\"turn\":4,\"queued\":[5,6],\"last\":6}");
        _cleanup_(message_freep) Message *m = NULL;
        uint64_t serial = request("prompt", &m), number;
        CHECK(json_get_u64(message_object(m), "number", 99, &number) >= 0 && number == 7);
        ok(serial);
        expect(answers, "early: fine|");
        conversation_state(conversation, &s);
        CHECK(s.turn && s.prompt == 4 && s.queued == 3 && turns.running == 1 && turns.waiting == 1);
        tell("turn-ended", "\"prompt\":4,\"reason\":\"end_turn\"");
        for (unsigned i = 5; i <= 7; i++) {
                char fields[64];

                ok(request("turn", NULL));
                (void) snprintf(fields, sizeof(fields), "\"prompt\":%u", i);
                tell("turn-started", fields);
                (void) snprintf(fields, sizeof(fields), "\"prompt\":%u,\"reason\":\"end_turn\"", i);
                tell("turn-ended", fields);
        }
        CHECK(quiet() && !conversation_busy(conversation) && !given);
        end();
}

static uint64_t requested_prompt(uint64_t wanted) {
        _cleanup_(message_freep) Message *m = NULL;
        uint64_t number;

        uint64_t serial = request("prompt", &m);
        CHECK(json_get_u64(message_object(m), "number", 99, &number) >= 0);
        CHECK_INT(number, wanted);
        CHECK(message_peek_fd(m, "text") >= 0);
        return serial;
}

/* What a shim says of turns and prompts that errandd did not give it holds up nobody, and it is as well served as before when it stops that. */
static void test_claims(void) {
        begin("{\"ready\":true,\"turn\":4,\"queued\":[5,6],\"last\":6}");
        CHECK(turns.running == 0 && turns.waiting == 0 && conversation_busy(conversation) && !given);
        (void) prompt("p");
        ok(requested_prompt(7));
        CHECK(turns.running == 0 && turns.waiting == 1 && quiet());
        tell("missed", "\"count\":1");
        state(request("status", NULL), "{\"ready\":true,\"turn\":4,\"queued\":[5,6,7,8,9,10],\"last\":99}");
        CHECK(turns.running == 0 && turns.waiting == 1 && quiet() && !given);
        tell("turn-ended", "\"prompt\":4,\"reason\":\"end_turn\"");
        ok(request("turn", NULL));
        tell("turn-started", "\"prompt\":5");
        CHECK(turns.running == 1 && turns.waiting == 1 && given);
        end();
        /* What it said before errandd sent that is no place for nothing. */
        begin("{\"ready\":true,\"turn\":4,\"queued\":[7,8],\"last\":6}");
        for (unsigned i = 7; i <= 8; i++) {
                (void) prompt("p");
                ok(requested_prompt(i));
                CHECK_INT(turns.waiting, i - 6);
        }
        end();
        /* One that was found so, and says that it is not: another turn has to be given. */
        begin_found(NULL);
        CHECK(turns.running == 1 && given);
        state(1, "{\"ready\":true,\"turn\":0,\"queued\":[],\"last\":6}");
        CHECK(turns.running == 0 && !given);
        tell("missed", "\"count\":1");
        state(request("status", NULL), "{\"ready\":true,\"turn\":6,\"queued\":[],\"last\":6}");
        CHECK(turns.running == 0 && !given);
        end();
}

static void test_refused(void) {
        begin(FRESH);
        (void) prompt("p");
        say("{\"v\":1,\"type\":\"error\",\"serial\":%llu,\"text\":\"not now\"}", (unsigned long long) request("prompt", NULL));
        expect(answers, "p: not now|");
        CHECK(!conversation_busy(conversation) && turns.waiting == 0 && quiet());
        /* Given up in the moment in which its turn was to begin. */
        (void) prompt("q");
        ok(request("prompt", NULL));
        uint64_t turn = request("turn", NULL);
        tell("turn-ended", "\"prompt\":2,\"reason\":\"expired\"");
        say("{\"v\":1,\"type\":\"error\",\"serial\":%llu,\"text\":\"nothing is queued\"}", (unsigned long long) turn);
        state(request("status", NULL), "{\"ready\":true,\"turn\":0,\"queued\":[],\"last\":2}");
        CHECK(turns.running == 0 && !conversation_busy(conversation) && quiet());
        (void) prompt("r");
        ok(request("prompt", NULL));
        ok(request("turn", NULL));
        end();
}

static void test_missed(void) {
        begin(FRESH);
        (void) prompt("a");
        (void) prompt("b");
        ok(request("prompt", NULL));
        ok(request("prompt", NULL));
        ok(request("turn", NULL));
        tell("turn-started", "\"prompt\":1");
        told[0] = 0;
        tell("missed", "\"count\":9");
        tell("missed", "\"count\":1");
        uint64_t serial = request("status", NULL);
        CHECK(quiet()); /* one question is enough */
        state(serial, "{\"ready\":true,\"turn\":0,\"queued\":[2],\"last\":2}");
        expect(told, "missed 9|missed 1|turn-ended 1 error it is over, and how |");
        ok(request("turn", NULL));
        end();
}

static void test_questions(void) {
        ConversationState s;
        Fault f = {};

        begin("{\"ready\":true,\"turn\":1,\"queued\":[],\"last\":1}");
        CHECK(conversation_answer(conversation, 0, "yes", on_done, (void *) "none", &f) < 0 && f.code == ERROR_WRONG_STATE);
        fault_done(&f);
        tell("question", "\"question\":3,\"title\":\"may I\",\"options\":\"yes\\tYes\\tallow_once\"");
        tell("question", "\"question\":3,\"title\":\"again\",\"options\":\"\"");
        CHECK_INT(conversation_answer(conversation, 0, "yes", on_done, (void *) "answer", &f), 0);
        _cleanup_(message_freep) Message *m = NULL;
        uint64_t serial = request("answer", &m), number;
        const char *option;
        CHECK(json_get_u64(message_object(m), "question", 99, &number) >= 0 && number == 3);
        CHECK(json_get_string(message_object(m), "option", &option) >= 0 && streq(option, "yes"));
        ok(serial);
        expect(answers, "answer: fine|");
        tell("question", "\"question\":4,\"title\":\"or\",\"options\":\"\"");
        CHECK(conversation_answer(conversation, 0, "yes", on_done, (void *) "two", &f) < 0 && f.code == ERROR_INVALID_ARGUMENT);
        fault_done(&f);
        tell("answered", "\"question\":3,\"option\":\"yes\"");
        tell("answered", "\"question\":77,\"option\":\"\",\"reason\":\"timeout\"");
        conversation_state(conversation, &s);
        CHECK(s.n_questions == 1 && s.questions[0] == 4);
        CHECK_INT(conversation_interrupt(conversation, on_done, (void *) "interrupt", &f), 0);
        say("{\"v\":1,\"type\":\"error\",\"serial\":%llu,\"text\":\"no turn\"}", (unsigned long long) request("interrupt", NULL));
        expect(answers, "interrupt: no turn|");
        end();
}

static void test_over(void) {
        begin(FRESH);
        for (unsigned i = 0; i < 3; i++)
                (void) prompt("p");
        uint64_t first = request("prompt", NULL), second = request("prompt", NULL);
        (void) request("prompt", NULL);
        ok(first);
        ok(second);
        ok(request("turn", NULL));
        tell("turn-started", "\"prompt\":1");
        told[0] = 0;
        shim = safe_close(shim);
        expect(answers, "p: fine|p: fine|p: gone|");
        expect(told, "turn-ended 1 error gone|turn-ended 2 error gone|");
        CHECK(!conversation && turns.running == 0 && turns.waiting == 0 && !turns.seats);
        end();
        /* errandd alone goes: whoever follows is told nothing wrong. */
        begin("{\"ready\":true,\"turn\":1,\"queued\":[2],\"last\":2}");
        end();
        expect(told, "");
}

static void test_limits(void) {
        begin(FRESH);
        turns_limit(&turns, 1, 65536);
        for (unsigned i = 0; i < PROMPTS_MAX; i++)
                CHECK_INT(prompt("p"), 0);
        answers[0] = 0;
        CHECK(prompt("more") < 0);
        expect(answers, "more: 64 prompts of session a1 wait already; let it answer some|");
        end();
        begin(FRESH);
        turns_limit(&turns, 1, 0);
        CHECK(prompt("first") == 0 && prompt("second") < 0);
        expect(answers, "second: as many prompts wait for a turn as may (limits.maxQueueLength); try again later|");
        end();
}

/* Whatever a shim says, errandd does not fall, no prompt is doubled, and turns are not lost to others. */
static void test_nonsense(void) {
        static const char *const lines[] = {
                "{\"v\":1,\"type\":\"update\"}",
                "{\"v\":1,\"type\":\"update\",\"kind\":7,\"fields\":{}}",
                "{\"v\":1,\"type\":\"update\",\"kind\":\"mood\",\"fields\":{\"a\":1}}",
                "{\"v\":1,\"type\":\"update\",\"kind\":\"turn-started\",\"fields\":{\"prompt\":99}}",
                "{\"v\":1,\"type\":\"update\",\"kind\":\"turn-started\",\"fields\":{\"prompt\":0}}",
                "{\"v\":1,\"type\":\"update\",\"kind\":\"turn-ended\",\"fields\":{\"prompt\":0,\"reason\":\"end_turn\"}}",
                "{\"v\":1,\"type\":\"update\",\"kind\":\"turn-ended\",\"fields\":{\"prompt\":12,\"reason\":\"end_turn\"}}",
                "{\"v\":1,\"type\":\"update\",\"kind\":\"queued\",\"fields\":{\"prompt\":500}}",
                "{\"v\":1,\"type\":\"update\",\"kind\":\"question\",\"fields\":{\"question\":0,\"title\":\"\",\"options\":\"\"}}",
                "{\"v\":1,\"type\":\"ok\",\"serial\":4711}",
                "{\"v\":1,\"type\":\"state\",\"state\":\"running\"}",
                "{\"v\":1,\"type\":\"error\",\"text\":\"what\"}",
        };

        begin(FRESH);
        for (unsigned round = 0; round < 200; round++)
                for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                        say("%s", lines[i]);
        expect(told, "");
        CHECK(!conversation_busy(conversation) && turns.running == 0 && turns.waiting == 0);
        (void) prompt("p");
        ok(request("prompt", NULL));
        ok(request("turn", NULL));
        tell("turn-started", "\"prompt\":1");
        tell("turn-started", "\"prompt\":1");
        tell("turn-ended", "\"prompt\":1,\"reason\":\"end_turn\"");
        tell("turn-ended", "\"prompt\":1,\"reason\":\"end_turn\"");
        expect(told, "turn-started 1|turn-ended 1 end_turn|");
        for (unsigned i = 1; i < 40; i++) {
                char fields[64];

                (void) snprintf(fields, sizeof(fields), "\"question\":%u,\"title\":\"t\",\"options\":\"\"", i);
                tell("question", fields);
        }
        ConversationState s;
        conversation_state(conversation, &s);
        CHECK_INT(s.n_questions, QUESTIONS_MAX);
        end();
}

static void test_broken(void) {
        static const char *const states[] = {
                "7", "{}", "{\"ready\":1,\"turn\":0,\"queued\":[],\"last\":0}", "{\"ready\":true,\"turn\":0,\"queued\":[0],\"last\":0}",
                "{\"ready\":true,\"turn\":0,\"queued\":[\"1\"],\"last\":0}", "{\"ready\":true,\"turn\":0,\"queued\":{},\"last\":0}",
                "{\"ready\":true,\"turn\":-1,\"queued\":[],\"last\":0}", "{\"ready\":true,\"turn\":0,\"queued\":[],\"last\":\"1\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(states); i++) {
                begin(NULL);
                (void) prompt("early");
                state(1, states[i]);
                expect(answers, "early: its shim does not say where the conversation is|");
                CHECK(prompt("late") < 0 && quiet());
                CHECK(turns.running == 0 && turns.waiting == 0);
                end();
        }
        /* It wants a turn, and takes none: not asked for ever, and the turn is others'. */
        begin(FRESH);
        (void) prompt("p");
        ok(request("prompt", NULL));
        told[0] = 0;
        for (unsigned i = 0; i < 3; i++) {
                say("{\"v\":1,\"type\":\"error\",\"serial\":%llu,\"text\":\"no\"}", (unsigned long long) request("turn", NULL));
                if (i < 2)
                        state(request("status", NULL), "{\"ready\":true,\"turn\":0,\"queued\":[1],\"last\":1}");
        }
        expect(told, "turn-ended 1 error its shim takes no tu|");
        CHECK(quiet() && turns.running == 0 && turns.waiting == 0 && !conversation_busy(conversation));
        end();
}

/* The connection breaks; another one is there, over which the shim has been asked where it is: the number of the last update that it is to tell after. */
static uint64_t again(uint64_t *ret_serial) {
        _cleanup_(message_freep) Message *m = NULL;
        uint64_t after;
        bool watch;

        conversation_detach(conversation);
        client = shim_client_free(client);
        shim = safe_close(shim);
        connect_shim();
        CHECK_INT(conversation_attach(conversation, client), 0);
        *ret_serial = request("status", &m);
        CHECK(json_get_bool(message_object(m), "watch", &watch) >= 0 && watch);
        return json_get_u64(message_object(m), "after", INT64_MAX, &after) < 0 ? UINT64_MAX : after;
}

static void counted(const char *kind, const char *fields, unsigned number) {
        say("{\"v\":1,\"type\":\"update\",\"kind\":\"%s\",\"fields\":{%s},\"number\":%u}", kind, fields, number);
}

static void counted_state(uint64_t serial, const char *conversation_text, unsigned number) {
        say("{\"v\":1,\"type\":\"status\",\"serial\":%llu,\"state\":\"running\",\"told\":%u,\"conversation\":%s}", (unsigned long long) serial, number,
            conversation_text);
}

/* Of six that were sent one was given a turn, and has it, one was told to be queued, one is so by the state, one was taken and is gone, and two were not taken. */
static void test_again(void) {
        uint64_t serial;

        begin(NULL);
        counted_state(1, FRESH, 7);
        for (unsigned i = 1; i <= 6; i++) {
                (void) prompt("p");
                (void) requested_prompt(i);
        }
        counted("queued", "\"prompt\":1", 8);
        expect(answers, "p: fine|");
        (void) request("turn", NULL);
        CHECK_INT(again(&serial), 8);
        CHECK(prompt("late") == 0 && quiet()); /* behind the others */
        counted("turn-started", "\"prompt\":1", 9);
        counted("queued", "\"prompt\":2", 10);
        expect(answers, "p: fine|");
        counted("missed", "\"count\":2", 12);
        expect(told, "queued 1|turn-started 1|queued 2|missed 2|");
        counted_state(serial, "{\"ready\":true,\"turn\":1,\"queued\":[2,3],\"last\":4}", 12);
        expect(answers, "p: fine|p: errandd's connection to its shim broke, and whether its agent got the prompt is not known; the transcript tells|");
        for (unsigned i = 5; i <= 7; i++)
                ok(requested_prompt(i));
        expect(answers, "p: fine|p: fine|late: fine|");
        CHECK(turns.running == 1 && turns.waiting == 5 && quiet());
        end();
}

static void test_again_turn(void) {
        uint64_t serial;
        Fault f = {};

        /* One that was asked for: it is not asked for twice when it began, and is when not. */
        for (unsigned began = 0; began < 2; began++) {
                begin(NULL);
                counted_state(1, FRESH, 0);
                (void) prompt("p");
                ok(requested_prompt(1));
                (void) request("turn", NULL);
                CHECK_INT(again(&serial), 0);
                CHECK(turns.running == 1 && given);
                if (began)
                        counted("turn-started", "\"prompt\":1", 2);
                counted_state(serial, began ? "{\"ready\":true,\"turn\":1,\"queued\":[],\"last\":1}" : "{\"ready\":true,\"turn\":0,\"queued\":[1],\"last\":1}", 2);
                if (!began)
                        (void) request("turn", NULL);
                CHECK(turns.running == 1 && quiet());
                end();
        }
        /* What cannot be asked twice is told so, and so is everybody when there is no connection for a while. */
        begin("{\"ready\":true,\"turn\":1,\"queued\":[],\"last\":1}");
        CHECK_INT(conversation_interrupt(conversation, on_done, (void *) "i", &f), 0);
        (void) prompt("p");
        conversation_detach(conversation);
        expect(answers, "i: errandd's connection to its shim broke, and whether that got to its agent is not known; see how the session is, and ask again|");
        conversation_give_up(conversation);
        expect(answers, "p: errandd's connection to its shim broke, and whether its agent got the prompt is not known; the transcript tells|");
        CHECK(prompt("late") < 0 && conversation_interrupt(conversation, on_done, (void *) "i", &f) < 0);
        expect(answers, "late: the shim of session a1 cannot be reached at the moment, and errandd goes on trying; ask again in a while|");
        fault_done(&f);
        /* A shim that counts nothing is asked as if by a new errandd. */
        CHECK(again(&serial) == UINT64_MAX);
        state(serial, "{\"ready\":true,\"turn\":0,\"queued\":[2],\"last\":2}");
        expect(told, "turn-ended 1 error it is over, and how |");
        (void) request("turn", NULL);
        end();
}

int main(void) {
        log_setup("test", LOG_LEVEL_ERROR - 1);
        if (sd_event_new(&event) < 0 || !mkdtemp(directory))
                return EXIT_FAILURE;
        place = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        RUN(test_turn, "a prompt, its turn, what is told of it");
        RUN(test_order, "turns in the order of the prompts, one at a time, and none before the agent is ready");
        RUN(test_adopted, "after a restart the turn goes on, what is queued follows once, and numbers go on");
        RUN(test_claims, "C204: a turn or a prompt that only the shim tells of takes no place from others");
        RUN(test_refused, "what a shim refuses is told, and given up prompts hold nobody up");
        RUN(test_missed, "after missed events it is asked where it is, and a lost end is told");
        RUN(test_questions, "a question is answered by number, or as the one that is open");
        RUN(test_over, "when the shim goes everybody who waits is told, and each prompt has one end");
        RUN(test_limits, "so many prompts wait, of a session and of all");
        RUN(test_nonsense, "a shim that talks nonsense changes nothing");
        RUN(test_again, "C200: over a new connection each prompt that was sent is found, sent again, or told not to be known");
        RUN(test_again_turn, "C200: over a new connection no turn is asked for twice, and what cannot be known is told so");
        RUN(test_broken, "a shim that does not hold to the protocol is not talked to any more");
        end();
        char path[64];
        (void) snprintf(path, sizeof(path), "%s/shim", directory);
        (void) unlink(path);
        (void) rmdir(directory);
        safe_close(place);
        sd_event_unref(event);
        return TEST_END();
}
