/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "test.h"
#include "world.h"

static World w;
static TestAuthorizer authorizer;
static sd_bus *owner, *other;
static Session *a1, *b2;

/* What a client heard, member by member. */
typedef struct Heard {
        char text[4096];
        unsigned n;
} Heard;

static int on_signal(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Heard *h = userdata;
        uint8_t type;

        if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_SIGNAL)
                return 0;
        h->n++;
        if (strlen(h->text) < sizeof(h->text) - 256)
                snprintf(h->text + strlen(h->text), 256, "%s %s;", sd_bus_message_get_path(m), sd_bus_message_get_member(m));
        return 1;
}

static void subscribe(sd_bus *client, Heard *h) {
        Reply r;

        *h = (Heard){};
        CHECK(sd_bus_add_filter(client, NULL, on_signal, h) >= 0);
        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", NULL);
        CHECK_FINE(r);
        reply_done(&r);
}

static void begin(void) {
        authorizer = test_authorizer();
        w = world_new(&authorizer.authorizer);
        a1 = fake_session(w.manager, "a1", STRANGER);
        b2 = fake_session(w.manager, "b2", STRANGER - 1);
        owner = world_client(&w, STRANGER);
        other = world_client(&w, STRANGER - 1);
}

static void end(void) {
        sd_bus_close_unref(owner);
        sd_bus_close_unref(other);
        world_done(&w);
}

#define OBSERVER w.manager->observer
#define BUS OBSERVER.userdata

static void test_unicast(void) {
        sd_bus *operator;
        Heard mine, others, all, none;

        begin();
        operator = world_client(&w, geteuid());
        subscribe(owner, &mine);
        subscribe(other, &others);
        subscribe(operator, &all);
        OBSERVER.session_changed(a1, BUS);
        OBSERVER.session_refused(a1, "evil.example.com", 443, 7, BUS);
        OBSERVER.session_notice(a1, "egress", "a text", BUS);
        OBSERVER.session_exited(a1, "exited", 3, BUS);
        world_settle(&w);
        CHECK_STR(mine.text, "/org/errand1/session/a1 PropertiesChanged;/org/errand1/session/a1 EgressRefused;"
                             "/org/errand1/session/a1 Notice;/org/errand1/session/a1 Exited;");
        CHECK_STR(all.text, mine.text);
        CHECK_STR(others.text, "");
        (void) none;
        sd_bus_close_unref(operator);
        end();
}

static void test_unsubscribed(void) {
        Heard mine;
        Reply r;

        begin();
        OBSERVER.session_changed(a1, BUS); /* nobody listens */
        subscribe(owner, &mine);
        world_settle(&w);
        CHECK_INT(mine.n, 0);
        r = call(&w, owner, BUS_ROOT, BUS_MANAGER_INTERFACE, "Unsubscribe", NULL);
        CHECK_FINE(r);
        reply_done(&r);
        OBSERVER.session_changed(a1, BUS);
        world_settle(&w);
        CHECK_INT(mine.n, 0);
        end();
}

static int expect_signal(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        *(sd_bus_message **) userdata = sd_bus_message_ref(m);
        return 1;
}

static void test_contents(void) {
        const char *interface, *host, *name, *state;
        sd_bus_message *m = NULL;
        sd_bus_slot *slot;
        uint32_t count;
        uint16_t port;
        Heard mine;

        begin();
        subscribe(owner, &mine);
        CHECK(sd_bus_match_signal(owner, &slot, NULL, NULL, NULL, NULL, expect_signal, &m) >= 0);
        CHECK(sd_bus_add_filter(owner, NULL, expect_signal, &m) >= 0);
        OBSERVER.session_refused(a1, "evil.example.com", 443, UINT64_MAX, BUS);
        world_settle(&w);
        CHECK(m && sd_bus_message_read(m, "squ", &host, &port, &count) > 0);
        CHECK_STR(host, "evil.example.com");
        CHECK(port == 443 && count == UINT32_MAX);
        m = sd_bus_message_unref(m);

        a1->state = SESSION_RUNNING;
        OBSERVER.session_changed(a1, BUS);
        world_settle(&w);
        CHECK(m && sd_bus_message_has_signature(m, "sa{sv}as"));
        CHECK(sd_bus_message_read(m, "s", &interface) > 0);
        CHECK_STR(interface, BUS_SESSION_INTERFACE);
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        CHECK(sd_bus_message_read(m, "{sv}", &name, "s", &state) > 0);
        CHECK_STR(name, "State");
        CHECK_STR(state, "running");
        m = sd_bus_message_unref(m);

        OBSERVER.session_exited(a1, "\xff not UTF-8", 3, BUS);
        world_settle(&w);
        CHECK(m && sd_bus_message_has_signature(m, "si"));
        sd_bus_message_unref(m);
        sd_bus_slot_unref(slot);
        end();
}

static void test_objects(void) {
        Heard mine, others;
        Reply r;

        begin();
        subscribe(owner, &mine);
        subscribe(other, &others);
        fake_session(w.manager, "c3", STRANGER);
        r = call(&w, owner, BUS_SESSION_ROOT "/c3", BUS_SESSION_INTERFACE, "Grant", "ss", "example.com", "always");
        CHECK_FINE(r);
        reply_done(&r);
        OBSERVER.grant_changed(manager_find(w.manager, "c3"), session_grants(manager_find(w.manager, "c3"))->grants, BUS);
        r = call(&w, owner, BUS_GRANT_ROOT "/c3/1", BUS_GRANT_INTERFACE, "Revoke", NULL);
        CHECK_FINE(r);
        reply_done(&r);
        r = call(&w, owner, BUS_SESSION_ROOT "/c3", BUS_SESSION_INTERFACE, "Collect", NULL);
        CHECK_FINE(r);
        reply_done(&r);
        world_settle(&w);
        CHECK_STR(mine.text, "/org/errand1 InterfacesAdded;/org/errand1 InterfacesAdded;/org/errand1/grant/c3/1 PropertiesChanged;"
                             "/org/errand1 InterfacesRemoved;/org/errand1 InterfacesRemoved;");
        CHECK_STR(others.text, "");
        end();
}

static void test_added_contents(void) {
        const char *path, *interface;
        sd_bus_message *m = NULL;
        Heard mine;

        begin();
        subscribe(owner, &mine);
        CHECK(sd_bus_add_filter(owner, NULL, expect_signal, &m) >= 0);
        fake_session(w.manager, "c3", STRANGER);
        world_settle(&w);
        CHECK(m && sd_bus_message_has_signature(m, "oa{sa{sv}}"));
        CHECK(sd_bus_message_read(m, "o", &path) > 0);
        CHECK_STR(path, BUS_SESSION_ROOT "/c3");
        CHECK(sd_bus_message_enter_container(m, 'a', "{sa{sv}}") > 0);
        CHECK(sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0);
        CHECK(sd_bus_message_read(m, "s", &interface) > 0);
        CHECK_STR(interface, BUS_SESSION_INTERFACE);
        sd_bus_message_unref(m);
        end();
}

/* A subscriber that stops reading: what is kept for it is bounded, the last thing that it hears is that it was dropped, one call brings it
 * back, and nobody else notices. */
static void test_slow(void) {
        Heard mine, quick;
        sd_bus *operator;
        unsigned sent = 0;
        Reply r;

        begin();
        operator = world_client(&w, geteuid());
        subscribe(owner, &mine);
        subscribe(operator, &quick);
        CHECK(sd_bus_detach_event(owner) >= 0); /* stops */
        while (!strstr(quick.text, "end") && sent < 5000) {
                OBSERVER.session_changed(a1, BUS);
                if (++sent % 64 == 0)
                        world_settle(&w);
        }
        world_settle(&w);
        CHECK_INT(quick.n, sent);

        CHECK(sd_bus_attach_event(owner, w.event, 0) >= 0);
        world_settle(&w);
        CHECK(mine.n > BUS_QUEUED_SIGNALS_MAX && mine.n < sent);
        mine = (Heard){};
        OBSERVER.session_changed(a1, BUS);
        world_settle(&w);
        CHECK_STR(mine.text, ""); /* dropped */
        r = call(&w, owner, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", NULL);
        CHECK_FINE(r);
        reply_done(&r);
        OBSERVER.session_changed(a1, BUS);
        world_settle(&w);
        CHECK_INT(mine.n, 1);
        sd_bus_close_unref(operator);
        end();
}

static const Update reply = {.kind = UPDATE_MESSAGE, .n_fields = 1, .fields = {{.name = "text", .text = "an answer"}}};

static void test_update(void) {
        const Update question = {.kind = UPDATE_QUESTION, .n_fields = 3,
                                 .fields = {{.name = "question", .number = 7}, {.name = "title", .text = "may I \xff"}, {.name = "options", .text = ""}}};
        const char *kind, *name, *title;
        sd_bus_message *m = NULL;
        Heard mine, others;
        uint64_t number;

        begin();
        subscribe(owner, &mine);
        subscribe(other, &others);
        CHECK(sd_bus_add_filter(owner, NULL, expect_signal, &m) >= 0);
        OBSERVER.session_update(a1, &question, BUS);
        world_settle(&w);
        CHECK(m && sd_bus_message_has_signature(m, "sa{sv}") && streq(sd_bus_message_get_member(m), "Update"));
        CHECK(sd_bus_message_read(m, "s", &kind) > 0 && streq(kind, "question"));
        CHECK(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        CHECK(sd_bus_message_read(m, "{sv}", &name, "t", &number) > 0 && streq(name, "question") && number == 7);
        CHECK(sd_bus_message_read(m, "{sv}", &name, "s", &title) > 0 && streq(title, "may I \\xff"));
        sd_bus_message_unref(m);
        CHECK_STR(others.text, "");
        end();
}

/* An agent that writes faster than is read: text is left out and counted, what says where the conversation is comes all the same. */
static void test_missed(void) {
        const Update end_of_turn = {.kind = UPDATE_TURN_ENDED, .n_fields = 2, .fields = {{.name = "prompt", .number = 1}, {.name = "reason", .text = "end_turn"}}};
        UpdateCount slow = {}, quick = {};
        sd_bus *operator;
        uint64_t queued;
        Heard mine, all;

        begin();
        operator = world_client(&w, geteuid());
        subscribe(owner, &mine);
        subscribe(operator, &all);
        CHECK(sd_bus_add_filter(owner, NULL, count_updates, &slow) >= 0 && sd_bus_add_filter(operator, NULL, count_updates, &quick) >= 0);
        CHECK(sd_bus_detach_event(owner) >= 0);
        for (unsigned i = 0; i < 5000; i++) {
                OBSERVER.session_update(a1, &reply, BUS);
                if (i % 32 == 0)
                        world_settle(&w);
        }
        OBSERVER.session_update(a1, &end_of_turn, BUS);
        CHECK(sd_bus_get_n_queued_write(owner, &queued) >= 0);
        CHECK(sd_bus_attach_event(owner, w.event, 0) >= 0);
        world_settle(&w);
        CHECK(quick.texts == 5000 && quick.ends == 1 && quick.missed == 0);
        CHECK(!slow.unsubscribed && slow.ends == 1 && slow.missed_signals == 1);
        CHECK_INT(slow.texts + slow.missed, 5000);
        CHECK(slow.missed > 0);
        OBSERVER.session_update(a1, &reply, BUS);
        world_settle(&w);
        CHECK(slow.texts + slow.missed == 5001 && slow.missed_signals == 1);
        sd_bus_close_unref(operator);
        end();
}

static int last_member(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        snprintf(userdata, 64, "%s", sd_bus_message_get_member(m) ?: "");
        return 0;
}

static void test_told(void) {
        char last[64] = "";
        Heard mine;

        begin();
        subscribe(owner, &mine);
        CHECK(sd_bus_add_filter(owner, NULL, last_member, last) >= 0);
        CHECK(sd_bus_detach_event(owner) >= 0);
        for (unsigned i = 0; i < 5000; i++)
                OBSERVER.session_changed(a1, BUS);
        CHECK(sd_bus_attach_event(owner, w.event, 0) >= 0);
        world_settle(&w);
        CHECK_STR(last, "Unsubscribed");
        end();
}

static void test_vanished(void) {
        Heard mine;

        begin();
        subscribe(owner, &mine);
        sd_bus_close(owner);
        for (unsigned i = 0; i < 10; i++)
                OBSERVER.session_changed(a1, BUS); /* before its end is noticed */
        while (bus_connections(w.bus) > 1)
                CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
        OBSERVER.session_changed(a1, BUS);
        CHECK_INT(mine.n, 0);
        end();
}

int main(void) {
        RUN(test_unicast, "D001: signals reach the owner and operators, nobody else");
        RUN(test_unsubscribed, "signals reach subscribers only");
        RUN(test_contents, "EgressRefused, PropertiesChanged and Exited say what they should");
        RUN(test_objects, "D002: sessions and grants that come and go are told");
        RUN(test_added_contents, "D002: InterfacesAdded holds the interface");
        RUN(test_slow, "C204: a subscriber that stops reading is dropped, bounded, and can come back");
        RUN(test_update, "C196: what happens in a conversation goes to who may see the session");
        RUN(test_missed, "C204: a subscriber that is slower than an agent misses text, is told how much, and nothing else");
        RUN(test_told, "C204: the last signal of a dropped subscriber says so");
        RUN(test_vanished, "C194: a subscriber that vanished");
        return TEST_END();
}
