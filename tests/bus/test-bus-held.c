/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-link.h"
#include "message-bus.h"
#include "test.h"

/* The messages that errandd keeps of clients: until it knows whose they are, and until polkit has answered. */

#define A1 BUS_SESSION_ROOT "/a1"

static MessageBus *b;
static TestAuthorizer authorizer;
static sd_bus *client;

static void begin(void) {
        authorizer = test_authorizer();
        authorizer.authorizer.check = test_check_others;
        authorizer.authorizer.operator = test_no_operator;
        b = message_bus_new();
        fake_session(b->world.manager, "a1", message_bus_account());
        fake_session(b->world.manager, "b2", 2);
        client = message_bus_begin(b, &authorizer.authorizer);
}

static void end(void) {
        message_bus_end(&b, &client);
}

static void check_call(sd_bus *from, const char *path, const char *interface, const char *member, const char *error) {
        Reply r = call(&b->world, from, path, interface, member, NULL);

        CHECK_ERROR(r, error);
        reply_done(&r);
}

static sd_bus_message *large_call(sd_bus *from) {
        sd_bus_message *m = call_new(from, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession");
        _cleanup_free_ char *text = malloc(BUS_HELD_SIZE_MAX);

        memset(text, 'x', BUS_HELD_SIZE_MAX);
        text[BUS_HELD_SIZE_MAX - 1024] = 0;
        CHECK(sd_bus_message_append(m, "s", text) >= 0);
        return m;
}

#define FRESH (BUS_HELD_ALL_MAX / BUS_UNKNOWN_SIZE_MAX + 4)

/* Of which errandd knows, but for its uid. */
static sd_bus *unknown_client(void) {
        sd_bus *c = message_bus_client(b, message_bus_account());

        check_call(c, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        b->world.bus->links->uid = UID_NONE; /* who called last is the first */
        return c;
}

/* What clients send before their uid is known is refused to such as they are alone, and of these the first small call of none. */
static void test_unknown_share(void) {
        static Waiting large[FRESH * 4];
        size_t refused = 0, fit = BUS_UNKNOWN_ALL_MAX / (BUS_HELD_SIZE_MAX - 1024);
        sd_bus *fresh[FRESH], *last;
        Waiting known;

        begin();
        authorizer.hold = true;
        for (size_t i = 0; i < FRESH; i++)
                fresh[i] = unknown_client();
        check_call(client, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        for (size_t i = 0; i < ELEMENTSOF(large); i++) {
                call_start(fresh[i % FRESH], large_call(fresh[i % FRESH]), large + i);
                message_bus_settle(b, fresh[i % FRESH]);
                message_bus_settle(b, b->service);
        }
        CHECK(b->world.bus->unknown_size <= BUS_UNKNOWN_ALL_MAX && b->world.bus->unknown_size > BUS_UNKNOWN_ALL_MAX - BUS_HELD_SIZE_MAX);
        size_t left = BUS_UNKNOWN_ALL_MAX - b->world.bus->unknown_size;
        b->world.bus->unknown_size += left; /* as if they were that much larger */
        last = message_bus_client(b, message_bus_account());
        check_call(last, A1, BUS_SESSION_INTERFACE, "Describe", "no error"); /* kept for a moment itself */
        call_start(client, call_new(client, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Start"), &known);
        while (authorizer.n_held == 0 && !known.answered)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_INT(authorizer.n_held, 1);
        b->world.bus->unknown_size -= left;
        for (size_t i = 0; i < ELEMENTSOF(large); i++) {
                refused += large[i].answered;
                waiting_done(large + i);
        }
        CHECK_INT(refused, ELEMENTSOF(large) - fit);
        waiting_done(&known);
        for (size_t i = 0; i < FRESH; i++)
                sd_bus_close_unref(fresh[i]);
        while (bus_connections(b->world.bus) > 2)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_INT(b->world.bus->unknown_size, 0);
        sd_bus_close_unref(last);
        end();
}

/* So much may one more of that account have, if it and another have so much already. */
static void check_held(size_t own, size_t others, size_t expected) {
        BusLink *l = b->world.bus->links, *other = l->next;

        bus_link_hold(l, own);
        bus_link_hold(other, others);
        CHECK(bus_link_may_hold(l, expected));
        CHECK(!bus_link_may_hold(l, expected + 2));
        bus_link_let_go(l, own);
        bus_link_let_go(other, others);
}

/* However many accounts have filled their part, the next one has something. */
static void test_held_share(void) {
        size_t all = BUS_HELD_ALL_MAX;

        begin();
        sd_bus *second = message_bus_client(b, message_bus_account());
        check_call(client, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        check_call(second, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        b->world.bus->links->next->uid = 77777;
        check_held(0, 0, all / 2);
        check_held(all / 4, 0, all / 4);
        check_held(0, all / 2, all / 4); /* of what one account leaves, and two */
        check_held(0, all / 4 * 3, all / 8);
        check_held(0, all, BUS_HELD_SIZE_MAX);
        check_held(0, 2 * all, BUS_HELD_SIZE_MAX);
        CHECK_INT(b->world.bus->held_size, 0);
        sd_bus_close_unref(second);
        end();
}

static size_t n_answered;

static bool one_at_a_time(const Authorizer *a, _unused_ uid_t uid) {
        return ((const TestAuthorizer *) a)->n_held > n_answered;
}

/* polkit has as many questions of all as it may: the end of one lets the next account ask, which has none that could end. */
static void test_next_account(void) {
        Waiting first, second;
        sd_bus *other;

        begin();
        b->world.bus->delay_usec = USEC_PER_SEC * 3600;
        authorizer.hold = true;
        authorizer.authorizer.is_busy = one_at_a_time;
        n_answered = 0;
        other = message_bus_client(b, message_bus_account());
        check_call(other, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        b->world.bus->links->uid = 77777;
        check_call(client, A1, BUS_SESSION_INTERFACE, "Describe", "no error");
        call_start(client, call_new(client, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Start"), &first);
        message_bus_settle(b, client);
        message_bus_settle(b, b->service);
        call_start(other, call_new(other, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Start"), &second);
        while (!b->world.bus->delayed)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_INT(authorizer.n_held, 1);
        authorizer.done[n_answered++](true, authorizer.userdata[0]);
        while (authorizer.n_held < 2)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        authorizer.done[n_answered++](true, authorizer.userdata[1]);
        while (!first.answered || !second.answered)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_FINE(first.reply);
        CHECK_FINE(second.reply);
        waiting_done(&first);
        waiting_done(&second);
        sd_bus_close_unref(other);
        end();
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_WARNING);
        RUN(test_unknown_share, "C204: clients whose uid is not known yet have only each other wait");
        RUN(test_held_share, "C204: accounts share what is held");
        RUN(test_next_account, "C204: an account that waits for others' questions is asked about when one of them is answered");
        return TEST_END();
}
