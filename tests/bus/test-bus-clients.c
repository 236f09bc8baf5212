/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-link.h"
#include "message-bus.h"
#include "test.h"

#define A1 BUS_SESSION_ROOT "/a1"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define OBSERVER b->world.manager->observer
#define OBSERVED OBSERVER.userdata

static MessageBus *b;
static TestAuthorizer authorizer;
static sd_bus *client;
static Session *a1, *b2; /* the client's, and another account's */

static void begin(void) {
        authorizer = test_authorizer();
        authorizer.authorizer.check = test_check_others;
        authorizer.authorizer.operator = test_no_operator;
        b = message_bus_new();
        a1 = fake_session(b->world.manager, "a1", message_bus_account());
        b2 = fake_session(b->world.manager, "b2", 2);
        client = message_bus_begin(b, &authorizer.authorizer);
}

static void end(void) {
        message_bus_end(&b, &client);
}

static void wait_links(size_t n) {
        while (bus_connections(b->world.bus) > n)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
}

static void check_call(sd_bus *from, const char *path, const char *interface, const char *member, const char *error) {
        Reply r = call(&b->world, from, path, interface, member, NULL);

        CHECK_ERROR(r, error);
        reply_done(&r);
}

static void test_name(void) {
        Fault f = {};
        sd_bus *other;

        begin();
        other = message_bus_client(b, geteuid());
        CHECK(bus_request_name(other, &f) < 0);
        CHECK_INT(f.code, ERROR_WRONG_STATE);
        CHECK_STR(f.text, "another errandd serves this bus: org.errand1 has an owner already");
        fault_done(&f);
        CHECK_INT(sd_bus_request_name(other, BUS_NAME, SD_BUS_NAME_REPLACE_EXISTING), -EEXIST);
        CHECK_INT(bus_request_name(b->service, &f), 0); /* it is its own */
        sd_bus_close_unref(other);
        if (geteuid() == 0) {
                CHECK(bus_request_name(client, &f) < 0);
                CHECK_INT(f.code, ERROR_NOT_PERMITTED);
                fault_done(&f);
        }
        end();
}

static void check_uid(uid_t uid) {
        sd_bus *c;
        Reply r;

        begin();
        c = message_bus_client(b, uid);
        fake_session(b->world.manager, "c3", uid);
        check_call(c, BUS_SESSION_ROOT "/c3", BUS_SESSION_INTERFACE, "Start", "no error");
        check_call(c, A1, BUS_SESSION_INTERFACE, "Start", uid == message_bus_account() ? "no error" : "NotFound");
        r = call(&b->world, c, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession", "s", "c3");
        CHECK_FINE(r);
        reply_done(&r);
        for (BusLink *l = b->world.bus->links; l; l = l->next)
                CHECK(l->uid == uid);
        sd_bus_close_unref(c);
        end();
}

static void test_uid(void) {
        check_uid(geteuid());
        check_uid(message_bus_account());
        check_uid(message_bus_stranger());
}

/* Some calls before its uid is known: answered, in their order; more are too much. */
static void test_held_until_known(void) {
        static Waiting waiting[BUS_UNKNOWN_MESSAGES_MAX + 2];
        sd_bus_message *m;

        begin();
        CHECK(sd_bus_detach_event(b->service) >= 0); /* all are there before the answer about the uid */
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                call_start(client, call_new(client, A1, BUS_SESSION_INTERFACE, "Describe"), waiting + i);
        message_bus_settle(b, client);
        CHECK(sd_bus_attach_event(b->service, b->world.event, 0) >= 0);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                while (!waiting[i].answered)
                        CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                CHECK_ERROR(waiting[i].reply, i < BUS_UNKNOWN_MESSAGES_MAX ? "no error" : "LimitExceeded");
                waiting_done(waiting + i);
        }
        CHECK_INT(b->world.bus->held_size, 0);
        sd_bus_close_unref(client);
        wait_links(0);

        client = message_bus_client(b, message_bus_account());
        m = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession");
        {
                char *large = calloc(1, BUS_HELD_SIZE_MAX + 1);
                Reply r;

                memset(large, 'x', BUS_HELD_SIZE_MAX);
                CHECK(sd_bus_message_append(m, "s", large) >= 0);
                free(large);
                r = call_send(&b->world, client, m);
                CHECK_ERROR(r, "LimitExceeded");
                reply_done(&r);
        }
        CHECK_INT(b->world.bus->held_size, 0);
        end();
}

/* Whatever it waits for goes with it, at every moment of a call's life. */
static void test_gone(void) {
        Waiting waiting;

        begin();
        call_start(client, call_new(client, A1, BUS_SESSION_INTERFACE, "Start"), &waiting); /* before its uid is known */
        CHECK(sd_bus_flush(client) >= 0);
        waiting_done(&waiting);
        client = sd_bus_close_unref(client);
        do
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        while (bus_connections(b->world.bus) > 0 || b->world.bus->held_size > 0);
        message_bus_settle(b, b->service);
        CHECK_INT(b->world.bus->held_size, 0);

        authorizer.hold = true;
        client = message_bus_client(b, message_bus_account());
        call_start(client, call_new(client, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Start"), &waiting);
        while (authorizer.n_held == 0)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK(b->world.bus->held_size > 0);
        waiting_done(&waiting);
        client = sd_bus_close_unref(client);
        wait_links(0);
        CHECK_INT(authorizer.cancelled, 1);
        CHECK_INT(b->world.bus->held_size, 0);

        b->world.manager->wait = true;
        client = message_bus_client(b, message_bus_account());
        check_call(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", "no error");
        call_start(client, call_new(client, A1, BUS_SESSION_INTERFACE, "Stop"), &waiting);
        while (!a1->done)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        waiting_done(&waiting);
        client = sd_bus_close_unref(client);
        wait_links(0);
        fake_finish(a1, ERROR_NONE, NULL, -EBADF); /* answers nobody */
        OBSERVER.session_changed(a1, OBSERVED);
        message_bus_settle(b, b->service);
        end();
}

/* Somebody says that another's name has gone. */
static void test_false_word(void) {
        sd_bus_message *m;
        const char *name;
        sd_bus *liar;

        begin();
        check_call(client, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        CHECK(sd_bus_get_unique_name(client, &name) >= 0);
        liar = message_bus_client(b, message_bus_account());
        CHECK(sd_bus_message_new_signal(liar, &m, "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged") >= 0);
        CHECK(sd_bus_message_append(m, "sss", name, name, "") >= 0);
        CHECK(sd_bus_message_set_destination(m, BUS_NAME) >= 0);
        CHECK(sd_bus_send(liar, m, NULL) >= 0);
        sd_bus_message_unref(m);
        message_bus_settle(b, liar);
        message_bus_settle(b, b->service);
        CHECK_INT(bus_connections(b->world.bus), 1);
        sd_bus_close_unref(liar);
        end();
}

typedef struct Heard {
        char text[2048];
        unsigned n;
} Heard;

static int on_signal(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(m);
        Heard *h = userdata;
        uint8_t type;

        if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_SIGNAL || !sender || streq(sender, "org.freedesktop.DBus"))
                return 0;
        h->n++;
        if (strlen(h->text) < sizeof(h->text) - 256)
                (void) snprintf(h->text + strlen(h->text), 256, "%s %s;", sd_bus_message_get_path(m), sd_bus_message_get_member(m));
        return 0;
}

static void listen_to_all(sd_bus *c, Heard *h) {
        *h = (Heard){};
        CHECK(sd_bus_add_filter(c, NULL, on_signal, h) >= 0);
        CHECK(sd_bus_add_match(c, NULL, "type='signal'", NULL, NULL) >= 0);
        CHECK(sd_bus_add_match(c, NULL, "sender='org.errand1'", NULL, NULL) >= 0);
}

static void make_noise(void) {
        Session *c3 = fake_session(b->world.manager, "c3", message_bus_account());
        Reply r;

        OBSERVER.session_changed(a1, OBSERVED);
        OBSERVER.session_refused(a1, "evil.example.com", 443, 7, OBSERVED);
        OBSERVER.session_notice(a1, "egress", "a text", OBSERVED);
        OBSERVER.session_exited(a1, "exited", 3, OBSERVED);
        r = call(&b->world, client, BUS_SESSION_ROOT "/c3", BUS_SESSION_INTERFACE, "Grant", "ss", "example.com", "always");
        CHECK_FINE(r);
        reply_done(&r);
        fake_forget(c3);
        OBSERVER.session_exited(fake_session(b->world.manager, "d4", 3), "exited", 0, OBSERVED);
}

/* Nothing is ever broadcast: who is not subscribed hears nothing, whatever match rules it has, and a subscriber of another account neither. */
static void test_unicast(void) {
        Heard mine, silent, stranger;
        sd_bus *idle, *other;

        begin();
        idle = message_bus_client(b, message_bus_account());
        other = message_bus_client(b, message_bus_stranger());
        check_call(idle, A1, BUS_SESSION_INTERFACE, "Describe", "no error"); /* known, and not subscribed */
        listen_to_all(client, &mine);
        listen_to_all(idle, &silent);
        listen_to_all(other, &stranger);
        check_call(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", "no error");
        if (geteuid() == 0)
                check_call(other, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", "no error");
        make_noise();
        message_bus_settle(b, b->service);
        message_bus_settle(b, client);
        message_bus_settle(b, idle);
        message_bus_settle(b, other);
        CHECK_STR(mine.text, "/org/errand1 InterfacesAdded;" A1 " PropertiesChanged;" A1 " EgressRefused;" A1 " Notice;" A1 " Exited;"
                             "/org/errand1 InterfacesAdded;/org/errand1 InterfacesRemoved;");
        CHECK_STR(silent.text, "");
        CHECK_STR(stranger.text, "");
        sd_bus_close_unref(idle);
        sd_bus_close_unref(other);
        end();
}

/* Who was let through to another's session to read it hears of it, until it has gone. */
static void test_followed(void) {
        Waiting waiting;
        Heard mine;

        begin();
        authorizer.hold = true;
        listen_to_all(client, &mine);
        check_call(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", "no error");
        OBSERVER.session_changed(b2, OBSERVED);
        call_start(client, call_new(client, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Describe"), &waiting);
        while (authorizer.n_held == 0)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        OBSERVER.session_changed(b2, OBSERVED);
        authorizer.done[0](true, authorizer.userdata[0]);
        while (!waiting.answered)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_FINE(waiting.reply);
        waiting_done(&waiting);
        message_bus_settle(b, client);
        CHECK_STR(mine.text, "");
        OBSERVER.session_exited(b2, "exited", 0, OBSERVED);
        fake_forget(b2);
        OBSERVER.session_changed(fake_session(b->world.manager, "b2", 3), OBSERVED); /* another of the same id */
        message_bus_settle(b, b->service);
        message_bus_settle(b, client);
        CHECK_STR(mine.text, BUS_SESSION_ROOT "/b2 Exited;/org/errand1 InterfacesRemoved;");
        end();
}

/* On one connection the object that is meant, and who may see it, change with every message. */
static void test_filtered(void) {
        sd_bus *other;

        begin();
        other = message_bus_client(b, message_bus_stranger());
        fake_session(b->world.manager, "c3", message_bus_account());
        for (unsigned i = 0; i < 3; i++) {
                CHECK_INT(count_objects(&b->world, client), 2);
                CHECK_INT(count_objects(&b->world, other), geteuid() == 0 ? 1 : 2);
        }
        check_call(client, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Describe", "NotFound");
        check_call(other, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Describe", geteuid() == 0 ? "no error" : "NotFound");
        sd_bus_close_unref(other);
        end();
}

/* Ten thousand calls of one client, most of which want no answer: nothing of it is kept beyond its account's share, and another is served. */
static void test_flood(void) {
        usec_t before;
        sd_bus *quiet;
        Reply r;

        begin();
        fake_session(b->world.manager, "c3", 3);
        quiet = message_bus_client(b, message_bus_stranger());
        check_call(client, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        check_call(quiet, geteuid() == 0 ? BUS_SESSION_ROOT "/b2" : A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        authorizer.hold = true;
        for (unsigned i = 0; i < 10000; i++) {
                sd_bus_message *m = call_new(client, BUS_SESSION_ROOT "/c3", BUS_SESSION_INTERFACE, "Start");

                if (i % 100 != 0)
                        CHECK(sd_bus_message_set_expect_reply(m, false) >= 0);
                CHECK(sd_bus_send(client, m, NULL) >= 0);
                sd_bus_message_unref(m);
        }
        before = now_monotonic();
        if (geteuid() == 0)
                r = call(&b->world, quiet, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Start", NULL);
        else /* the account is one and the same, so what needs no authorization */
                r = call(&b->world, quiet, BUS_ROOT, PROPERTIES, "Get", "ss", BUS_MANAGER_INTERFACE, "Version");
        CHECK_FINE(r);
        reply_done(&r);
        printf("# another client's answer came after %llu ms\n", (unsigned long long) (now_monotonic() - before) / 1000);
        message_bus_settle(b, client);
        message_bus_settle(b, b->service);
        CHECK_INT(authorizer.n_held, BUS_ACCOUNT_HELD_MAX); /* so many have asked, and the rest was refused */
        CHECK(b->world.bus->held_size < BUS_ACCOUNT_HELD_MAX * 1024);
        CHECK_INT(bus_connections(b->world.bus), 2);
        CHECK_INT(b->world.manager->acts, geteuid() == 0);
        sd_bus_close_unref(quiet);
        end();
}

/* More questions at once than polkit is asked: the others wait until some are answered. */
static void test_questions(void) {
        static Waiting waiting[2 * BUS_ACCOUNT_HELD_MAX + 8];
        size_t left = ELEMENTSOF(waiting), answered = 0;

        begin();
        fake_session(b->world.manager, "c3", 3);
        check_call(client, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        authorizer.hold = true;
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                call_start(client, call_new(client, BUS_SESSION_ROOT "/c3", BUS_SESSION_INTERFACE, "Start"), waiting + i);
        message_bus_settle(b, client);
        message_bus_settle(b, b->service);
        CHECK_INT(authorizer.n_held, BUS_ACCOUNT_HELD_MAX);
        while (left > 0) {
                CHECK(authorizer.n_held - answered <= BUS_ACCOUNT_HELD_MAX);
                if (answered < authorizer.n_held) {
                        authorizer.done[answered](true, authorizer.userdata[answered]);
                        answered++;
                }
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
                for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                        if (waiting[i].answered) {
                                CHECK_FINE(waiting[i].reply);
                                waiting_done(waiting + i);
                                left--;
                        }
        }
        CHECK_INT(b->world.manager->acts, ELEMENTSOF(waiting));
        CHECK_INT(b->world.bus->held_size, 0);
        end();
}

/* More clients than there are links for: silent ones make room and are known again, and none is refused. */
static void test_room(void) {
        static sd_bus *clients[128 + 16];

        begin();
        b->world.bus->max_links = 128;
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = message_bus_client(b, message_bus_account());
                check_call(clients[i], A1, BUS_SESSION_INTERFACE, "Describe", "no error");
                CHECK(bus_connections(b->world.bus) <= 128 + 1);
        }
        check_call(clients[0], A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                clients[i] = sd_bus_close_unref(clients[i]);
        wait_links(0);
        end();
}

static void test_account(void) {
        static sd_bus *clients[BUS_ACCOUNT_KEPT_MAX + 1];

        begin();
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = message_bus_client(b, message_bus_account());
                check_call(clients[i], BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", i < BUS_ACCOUNT_KEPT_MAX ? "no error" : "LimitExceeded");
        }
        check_call(clients[0], BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", "no error"); /* it is one of them */
        check_call(clients[0], BUS_ROOT, BUS_MANAGER_INTERFACE, "Unsubscribe", "no error");
        check_call(clients[BUS_ACCOUNT_KEPT_MAX], BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", "no error");
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                sd_bus_close_unref(clients[i]);
        end();
}

static void check_bad(const char *path, const char *interface, const char *member, const char *types, const char *error, ...) {
        sd_bus_message *m = call_new(client, path, interface, member);
        va_list ap;
        Reply r;

        va_start(ap, error);
        CHECK(sd_bus_message_appendv(m, types, ap) >= 0);
        va_end(ap);
        r = call_send(&b->world, client, m);
        if (!streq(reply_error(&r), error))
                test_fail(__FILE__, __LINE__, "%s(%s): %s, not %s", member, types, reply_error(&r), error);
        reply_done(&r);
}

static void test_malformed(void) {
        begin();
        check_bad(BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "s", "org.freedesktop.DBus.Error.InvalidArgs", "x");
        check_bad(BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", "InvalidArgument", 1, "nosuch", "s", "x");
        check_bad(BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", "InvalidArgument", 1, "project", "u", 3U);
        check_bad(BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", "InvalidArgument", 2, "project", "s", "x", "project", "s", "y");
        check_bad(BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", "InvalidArgument", 1, "project", "v", "s", "x");
        check_bad(A1, BUS_SESSION_INTERFACE, "Grant", "s", "org.freedesktop.DBus.Error.InvalidArgs", "x");
        check_bad(A1, BUS_SESSION_INTERFACE, "Kill", "s", "org.freedesktop.DBus.Error.InvalidArgs", "x");
        check_bad(BUS_ROOT, PROPERTIES, "Get", "s", "InvalidArgument", "x");
        check_bad(BUS_ROOT, PROPERTIES, "GetAll", "ss", "InvalidArgument", "x", "y");
        check_bad("/", BUS_SESSION_INTERFACE, "Kill", "i", "NotFound", 9);
        CHECK_INT(b->world.manager->acts, 0);
        end();
}

static void test_bus_lost(void) {
        begin();
        check_call(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", "no error");
        message_bus_stop_daemon(b);
        while (b->lost == 0 || bus_connections(b->world.bus) > 0)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        OBSERVER.session_changed(a1, OBSERVED);
        world_settle(&b->world);
        CHECK_INT(b->lost, 1);
        end();
}

/* The face goes and the connection stays: errandd's own calls on it go on. */
static void test_face_gone(void) {
        Waiting waiting;
        Reply r;

        begin();
        b->world.manager->wait = true;
        call_start(client, call_new(client, A1, BUS_SESSION_INTERFACE, "Stop"), &waiting);
        while (!a1->done)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        b->world.bus = bus_free(b->world.bus);
        fake_finish(a1, ERROR_NONE, NULL, -EBADF);
        waiting_done(&waiting);
        r = call(&b->world, client, A1, BUS_SESSION_INTERFACE, "Stop", NULL);
        CHECK_STR(r.error, "org.freedesktop.DBus.Error.UnknownObject");
        reply_done(&r);
        end();
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_WARNING);
        RUN(test_name, "D001: the name has one owner");
        RUN(test_uid, "whose call it is, is the bus daemon's word");
        RUN(test_held_until_known, "what comes before the uid is known is held, bounded, and answered in its order");
        RUN(test_gone, "C194 C202: a client that goes takes its calls and its subscription with it");
        RUN(test_false_word, "C196: nobody else can say that a client has gone");
        RUN(test_unicast, "C196 D001: no signal is broadcast, and none reaches another account");
        RUN(test_followed, "who was let through to a session hears of it while it is there");
        RUN(test_filtered, "D001 D002: objects are filtered for each client of one connection");
        RUN(test_flood, "C204: ten thousand calls of one client, and another is answered");
        RUN(test_questions, "C204: an account's questions above those that polkit is asked at once wait for these");
        RUN(test_room, "more clients than links: nobody is refused");
        RUN(test_account, "what one account can have kept is bounded");
        RUN(test_malformed, "arguments of another form have no effect");
        RUN(test_bus_lost, "a bus that goes away is told once");
        RUN(test_face_gone, "the connection outlives the face");
        return TEST_END();
}
