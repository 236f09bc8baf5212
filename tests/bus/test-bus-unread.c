/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>

#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/message-size.h"
#include "message-bus.h"
#include "test.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"
#define SESSIONS 200
#define LARGE 8 /* answers with all of them: together more than a socket takes */

static MessageBus *b;
static TestAuthorizer authorizer;

static void begin(void) {
        const char *problem;
        GrantClock now;
        const Grant *g;
        char id[16];

        authorizer = test_authorizer();
        b = message_bus_new();
        for (unsigned i = 0; i < SESSIONS; i++) {
                (void) snprintf(id, sizeof(id), "s%u", i);
                Session *s = fake_session(b->world.manager, id, message_bus_account());
                CHECK(grant_clock_now(&now) >= 0 && grant_list_add(&s->grants, "example.com", "always", message_bus_account(), &now, &g, &problem) >= 0);
        }
        fake_receipt(b->world.manager, "s1");
        message_bus_serve(b, &authorizer.authorizer);
        message_bus_name(b);
}

static BusLink *link_of(sd_bus *client) {
        const char *name = NULL;

        CHECK(sd_bus_get_unique_name(client, &name) >= 0);
        for (BusLink *l = b->world.bus->links; l; l = l->next)
                if (streq(l->name, name))
                        return l;
        return NULL;
}

static void fill(char *text, size_t size, char c) {
        memset(text, c, size - 1);
        text[size - 1] = 0;
}

/* As if it had so much of answers to take. */
static void put(BusLink *l, uint64_t answers) {
        uint64_t more = answers - l->unread.answers;

        l->unread.answers += more;
        l->counted += more;
        b->world.bus->unread += more;
}

/* The sum that is kept is that of all. */
static void check_sum(void) {
        uint64_t sum = 0;

        for (const BusLink *l = b->world.bus->links; l; l = l->next)
                sum += bus_unread_total(l) + l->reserved;
        CHECK_INT(b->world.bus->unread, sum);
}

static void check_counted(sd_bus *client, const char *path, const char *interface, const char *member, const char *types, const char *first, const char *second) {
        BusLink *l = link_of(client);
        uint64_t before = l->unread.answers;
        size_t size = 0;

        Reply r = call(&b->world, client, path, interface, member, types, first, second);
        CHECK_FINE(r);
        CHECK(message_size(r.message, SIZE_MAX, &size) >= 0);
        uint64_t counted = l->unread.answers - before, most = 3 * size + BUS_UNREAD_INTROSPECT_BYTES + SESSIONS * (uint64_t) BUS_UNREAD_NAME_BYTES;
        bool fine = counted >= size && counted <= most;
        if (!fine)
                printf("# %s of %s: %zu bytes, counted as %llu\n", member, path, size, (unsigned long long) counted);
        CHECK(fine);
        check_sum();
        reply_done(&r);
}

/* What libsystemd answers with is counted by what it is made of. */
static void test_sizes(void) {
        sd_bus *client;
        BusLink *l;

        begin();
        client = message_bus_client(b, message_bus_account());
        Reply r = call(&b->world, client, BUS_ROOT, PROPERTIES, "Get", "ss", BUS_MANAGER_INTERFACE, "Version");
        reply_done(&r);
        l = link_of(client);
        CHECK_INT(l->unread.answers, BUS_UNREAD_CALL_BYTES);
        l->ping = sd_bus_slot_ref(b->world.bus->connections->slots[0]); /* as if one were on its way, that what is counted stays so */
        check_counted(client, BUS_ROOT, "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, NULL);
        check_counted(client, BUS_SESSION_ROOT, "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, NULL);
        check_counted(client, BUS_SESSION_ROOT "/s1", "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, NULL);
        check_counted(client, BUS_ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", NULL, NULL, NULL);
        check_counted(client, BUS_ROOT, PROPERTIES, "GetAll", "s", BUS_MANAGER_INTERFACE, NULL);
        check_counted(client, BUS_SESSION_ROOT "/s1", PROPERTIES, "GetAll", "s", BUS_SESSION_INTERFACE, NULL);
        check_counted(client, BUS_GRANT_ROOT "/s1/1", PROPERTIES, "GetAll", "s", BUS_GRANT_INTERFACE, NULL);
        check_counted(client, BUS_RECEIPT_ROOT "/1", PROPERTIES, "GetAll", "s", BUS_RECEIPT_INTERFACE, NULL);
        check_counted(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListThreads", NULL, NULL, NULL);
        check_counted(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListGrants", "s", "s1", NULL);
        check_counted(client, BUS_SESSION_ROOT "/s1", BUS_SESSION_INTERFACE, "Describe", NULL, NULL, NULL);
        check_counted(client, BUS_SESSION_ROOT "/s1", BUS_SESSION_INTERFACE, "Say", "s", "!help", NULL);
        sd_bus_close_unref(client);
        b = message_bus_free(b);
}

static void check_refused(sd_bus *client, const char *path, const char *interface, const char *member, const char *first, const char *second) {
        BusLink *l = link_of(client);
        uint64_t before = l->unread.answers;
        size_t size = 0;

        Reply r = call(&b->world, client, path, interface, member, first ? "ss" : NULL, first, second);
        CHECK(r.failed && message_size(r.message, SIZE_MAX, &size) >= 0);
        CHECK(size <= 2 * BUS_UNREAD_CALL_BYTES && l->unread.answers - before >= size);
        reply_done(&r);
}

/* An error that repeats what was said wrongly has a bound, and counts as well. */
static void test_errors(void) {
        char path[65536], text[65536];
        sd_bus *client;

        begin();
        client = message_bus_client(b, message_bus_account());
        fill(path, sizeof(path), 'x');
        path[0] = '/';
        fill(text, sizeof(text), '\n');
        Reply r = call(&b->world, client, BUS_ROOT, PROPERTIES, "Get", "ss", BUS_MANAGER_INTERFACE, "Version");
        reply_done(&r);
        link_of(client)->ping = sd_bus_slot_ref(b->world.bus->connections->slots[0]);
        check_refused(client, BUS_ROOT, PROPERTIES, "Get", path, "Version");
        check_refused(client, BUS_ROOT, PROPERTIES, "Get", text, "Version");
        check_refused(client, BUS_ROOT, PROPERTIES, "Get", BUS_MANAGER_INTERFACE, text);
        check_refused(client, path, PROPERTIES, "Get", BUS_MANAGER_INTERFACE, "Version");
        check_refused(client, path, "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL);
        path[BUS_PATH_MAX] = 0; /* the longest that is looked for */
        check_refused(client, path, "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL);
        check_refused(client, path, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", NULL, NULL);
        sd_bus_close_unref(client);
        b = message_bus_free(b);
}

static void check_get(sd_bus *client, const char *error) {
        Reply r = call(&b->world, client, BUS_ROOT, PROPERTIES, "Get", "ss", BUS_MANAGER_INTERFACE, "Version");

        CHECK_ERROR(r, error);
        reply_done(&r);
}

/* A client that reads is asked behind its answers, and says so. */
static void test_asked(void) {
        sd_bus *client;

        begin();
        client = message_bus_client(b, message_bus_account());
        for (unsigned i = 0; i < 2 * BUS_UNREAD_PING_BYTES / BUS_UNREAD_CALL_BYTES; i++) {
                check_get(client, "no error");
                CHECK(link_of(client)->unread.answers <= BUS_UNREAD_PING_BYTES + BUS_UNREAD_CALL_BYTES);
        }
        message_bus_settle(b, b->service); /* the ping is on its way, then answered */
        message_bus_settle(b, client);
        message_bus_settle(b, client);
        message_bus_settle(b, b->service);
        CHECK(link_of(client)->unread.answers <= BUS_UNREAD_CALL_BYTES && !link_of(client)->ping);
        sd_bus_close_unref(client);
        b = message_bus_free(b);
}

/* So much that the bus daemon keeps some of it, and then it reads nothing; → what is still counted as unread. */
static sd_bus *stuck_client(uint64_t counted) {
        sd_bus *client = message_bus_client(b, message_bus_account());
        uint64_t serial; /* where nobody wants it, no answer is */

        check_get(client, "no error");
        CHECK(sd_bus_detach_event(client) >= 0);
        for (unsigned i = 0; i < LARGE; i++) {
                sd_bus_message *m = call_new(client, BUS_ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects");

                CHECK(sd_bus_send(client, m, &serial) >= 0 && sd_bus_flush(client) >= 0);
                sd_bus_message_unref(m);
        }
        message_bus_settle(b, b->service);
        while (link_of(client)->unread.answers < (uint64_t) LARGE * SESSIONS * BUS_UNREAD_OBJECT_BYTES)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        message_bus_settle(b, b->service);
        put(link_of(client), link_of(client)->unread.answers + counted);
        return client;
}

/* The number of errandd's last message. */
static uint64_t last_number(sd_bus *client) {
        uint64_t number = 0;

        Reply r = call(&b->world, client, BUS_ROOT, PROPERTIES, "Get", "ss", BUS_MANAGER_INTERFACE, "Version");
        CHECK(sd_bus_message_get_cookie(r.message, &number) >= 0);
        reply_done(&r);
        return number;
}

/* An answer to a call of errandd's that nobody has read. */
static void answer_blindly(sd_bus *client, uint64_t number) {
        sd_bus_message *called = NULL, *m = NULL;
        const char *name;

        CHECK(sd_bus_get_unique_name(b->service, &name) >= 0);
        CHECK(sd_bus_message_new_method_call(client, &called, name, "/", "org.freedesktop.DBus.Peer", "Ping") >= 0);
        CHECK(sd_bus_message_set_sender(called, name) >= 0 && sd_bus_message_seal(called, number, 0) >= 0);
        CHECK(sd_bus_message_new_method_return(called, &m) >= 0 && sd_bus_send(client, m, NULL) >= 0 && sd_bus_flush(client) >= 0);
        sd_bus_message_unref(called);
        sd_bus_message_unref(m);
}

/* Who reads nothing cannot say that it has, by the numbers that errandd's messages have for everybody. */
static void test_forged(void) {
        sd_bus *same, *stuck;
        uint64_t first, last, unread;

        begin();
        same = message_bus_client(b, message_bus_account());
        first = last_number(same);
        stuck = stuck_client(0);
        CHECK(link_of(stuck)->ping);
        last = last_number(same);
        unread = link_of(stuck)->unread.answers;
        CHECK(last - first < 1000);
        for (uint64_t n = first; n <= last; n++)
                answer_blindly(stuck, n);
        /* What it sends behind them comes behind them. */
        sd_bus_message *m = call_new(stuck, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe");
        CHECK(sd_bus_send(stuck, m, &last) >= 0 && sd_bus_flush(stuck) >= 0);
        sd_bus_message_unref(m);
        while (!link_of(stuck)->subscribed)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK(link_of(stuck)->unread.answers >= unread);
        sd_bus_close_unref(stuck);
        sd_bus_close_unref(same);
        b = message_bus_free(b);
}

static size_t count_pings(void) {
        size_t n = 0;

        for (BusLink *l = b->world.bus->links; l; l = l->next)
                n += !!l->ping;
        return n;
}

/* The bus daemon lets 128 calls of errandd's be without an answer, and polkit is asked by such ones as well. */
static void test_pings(void) {
        sd_bus *mute[BUS_UNREAD_PINGS_ACCOUNT_MAX + 2];

        begin();
        for (size_t i = 0; i < ELEMENTSOF(mute); i++) {
                mute[i] = message_bus_client(b, message_bus_account());
                check_get(mute[i], "no error");
                CHECK(sd_bus_detach_event(mute[i]) >= 0);
                link_of(mute[i])->unread.answers = BUS_UNREAD_PING_BYTES;
                bus_unread_ask(link_of(mute[i]));
        }
        message_bus_settle(b, b->service);
        CHECK_INT(count_pings(), BUS_UNREAD_PINGS_ACCOUNT_MAX);
        /* Another account's turn does not depend on it. */
        link_of(mute[ELEMENTSOF(mute) - 1])->uid = 77777;
        link_of(mute[ELEMENTSOF(mute) - 1])->ping_waits = false;
        bus_unread_ask(link_of(mute[ELEMENTSOF(mute) - 1]));
        CHECK(link_of(mute[ELEMENTSOF(mute) - 1])->ping);
        /* When one goes, the next one is asked. */
        CHECK(!link_of(mute[ELEMENTSOF(mute) - 2])->ping);
        mute[0] = sd_bus_close_unref(mute[0]);
        while (!link_of(mute[ELEMENTSOF(mute) - 2])->ping)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        for (size_t i = 0; i < ELEMENTSOF(mute); i++)
                sd_bus_close_unref(mute[i]);
        b = message_bus_free(b);
}

static void test_refused(void) {
        sd_bus *stuck, *same, *other;
        Waiting waiting = {};

        begin();
        b->world.bus->delay_usec = 10 * USEC_PER_MSEC;
        same = message_bus_client(b, message_bus_account());
        other = message_bus_client(b, message_bus_stranger());
        check_get(other, "no error");
        check_get(same, "no error");
        stuck = stuck_client(BUS_UNREAD_ACCOUNT_MAX);
        for (unsigned i = 0; i < 2 * BUS_UNREAD_REFUSALS_MAX / BUS_UNREAD_CALL_BYTES; i++)
                check_get(same, "LimitExceeded"); /* it reads, so it is told */
        if (message_bus_stranger() != message_bus_account())
                check_get(other, "no error");
        /* Who does not read is told a few times, and then no more. */
        link_of(same)->unread.refusals = 2 * BUS_UNREAD_REFUSALS_MAX; /* beside the sum */
        link_of(same)->ping = link_of(same)->ping ?: sd_bus_slot_ref(b->world.bus->connections->slots[0]);
        call_start(same, call_new(same, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe"), &waiting);
        message_bus_settle(b, same);
        message_bus_settle(b, b->service);
        CHECK(!waiting.answered);
        waiting_done(&waiting);
        /* One that has gone has nothing to take. */
        stuck = sd_bus_close_unref(stuck);
        while (bus_connections(b->world.bus) > 2)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        check_get(same, "no error");
        sd_bus_close_unref(same);
        sd_bus_close_unref(other);
        b = message_bus_free(b);
}

/* While one takes nothing, the others of its account have what is left, and its own calls wait with theirs. */
static void test_stuck(void) {
        Waiting waiting[2] = {};
        sd_bus *stuck, *same;

        begin();
        same = message_bus_client(b, message_bus_account());
        check_get(same, "no error");
        stuck = stuck_client(BUS_UNREAD_ACCOUNT_MAX - 2 * BUS_UNREAD_ANSWER_MAX / 16);
        for (unsigned i = 0; i < 64; i++)
                check_get(same, "no error");
        /* Above the bound they wait, and when it goes they are served. */
        put(link_of(stuck), link_of(stuck)->unread.answers + BUS_UNREAD_ANSWER_MAX / 4);
        for (unsigned i = 0; i < ELEMENTSOF(waiting); i++)
                call_start(same, call_new(same, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe"), waiting + i);
        message_bus_settle(b, same);
        message_bus_settle(b, b->service);
        CHECK_INT(link_of(same)->n_delayed, ELEMENTSOF(waiting));
        CHECK(b->world.bus->held_size > 0 && bus_link_keeps(link_of(same)));
        CHECK(!waiting[0].answered && !waiting[1].answered);
        stuck = sd_bus_close_unref(stuck);
        for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
                while (!waiting[i].answered)
                        CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
                CHECK_FINE(waiting[i].reply);
                waiting_done(waiting + i);
        }
        CHECK_INT(link_of(same)->n_delayed, 0);
        CHECK_INT(link_of(same)->reserved, 0);
        CHECK_INT(b->world.bus->held_size, 0);
        sd_bus_close_unref(same);
        b = message_bus_free(b);
}

/* What waits is bounded, and goes with its client. */
static void test_delayed_gone(void) {
        Waiting waiting[BUS_HELD_MAX + 1] = {};
        sd_bus *stuck, *same;
        size_t answered = 0;

        begin();
        same = message_bus_client(b, message_bus_account());
        check_get(same, "no error");
        stuck = stuck_client(BUS_UNREAD_ACCOUNT_MAX);
        for (unsigned i = 0; i < ELEMENTSOF(waiting); i++)
                call_start(same, call_new(same, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe"), waiting + i);
        while (!waiting[BUS_HELD_MAX].answered)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_ERROR(waiting[BUS_HELD_MAX].reply, "LimitExceeded");
        CHECK_INT(link_of(same)->n_delayed, BUS_HELD_MAX);
        for (unsigned i = 0; i < ELEMENTSOF(waiting); i++) {
                answered += waiting[i].answered;
                waiting_done(waiting + i);
        }
        CHECK_INT(answered, 1);
        sd_bus_close_unref(same);
        while (bus_connections(b->world.bus) > 1)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK(!b->world.bus->delayed);
        CHECK_INT(b->world.bus->held_size, 0);
        sd_bus_close_unref(stuck);
        b = message_bus_free(b);
}

#define TERMINALS 40

/* Each that has been asked for. */
static void give_terminals(void) {
        for (size_t i = 0; i < b->world.manager->n_sessions; i++)
                if (b->world.manager->sessions[i]->done)
                        fake_finish(b->world.manager->sessions[i], ERROR_NONE, NULL, open("/dev/null", O_RDWR | O_CLOEXEC));
}

/* Terminals for as many connections of one account at once. reads: they go on to dispatch what comes; else they look at their terminal alone. */
static void check_terminals(bool reads) {
        static Waiting waiting[TERMINALS];
        static sd_bus *clients[TERMINALS];
        uint64_t most = 0, reserved;
        size_t left = TERMINALS;
        char path[64];

        begin();
        b->world.manager->wait = true;
        for (size_t i = 0; i < TERMINALS; i++) {
                (void) snprintf(path, sizeof(path), BUS_SESSION_ROOT "/s%zu", i);
                clients[i] = message_bus_client(b, message_bus_account());
                sd_bus_message *m = call_new(clients[i], path, BUS_SESSION_INTERFACE, "Attach");
                CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                call_start(clients[i], m, waiting + i);
        }
        while (b->world.manager->acts < BUS_UNREAD_ACCOUNT_MAX / BUS_UNREAD_DESCRIPTOR_BYTES)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        message_bus_settle(b, b->service);
        while (left > 0) {
                reserved = 0;
                for (BusLink *l = b->world.bus->links; l; l = l->next)
                        reserved += l->reserved;
                most = MAX(most, reserved);
                give_terminals();
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
                for (size_t i = 0; i < TERMINALS; i++) {
                        if (!waiting[i].answered)
                                continue;
                        CHECK_FINE(waiting[i].reply);
                        left--;
                        waiting_done(waiting + i);
                        if (!reads)
                                CHECK(sd_bus_detach_event(clients[i]) >= 0);
                }
        }
        CHECK(most > BUS_UNREAD_ACCOUNT_MAX - BUS_UNREAD_DESCRIPTOR_BYTES && most <= BUS_UNREAD_ACCOUNT_MAX + BUS_UNREAD_DESCRIPTOR_BYTES);
        CHECK_INT(b->world.manager->acts, TERMINALS);
        CHECK_INT(b->world.bus->held_size, 0);
        for (size_t i = 0; i < TERMINALS; i++)
                clients[i] = sd_bus_close_unref(clients[i]);
        b = message_bus_free(b);
}

static void test_terminals(void) {
        check_terminals(true);
}

static void test_terminals_alone(void) {
        check_terminals(false);
}

static void check_max(BusLink *l, uint64_t others, uint64_t own, int expected) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        BusLink *other = l->next ?: b->world.bus->links;
        uid_t uid = other->uid;

        other->uid = 77777;
        put(other, others);
        put(l, own);
        CHECK_INT(bus_unread_may_answer(l, &error) > 0, expected);
        sd_bus_error_free(&error);
        other->uid = uid;
        put(l, 0);
        put(other, 0);
}

/* However many accounts join, the bus daemon's limit is not reached. */
static void test_shares(void) {
        sd_bus *one, *two;
        BusLink *l;

        begin();
        one = message_bus_client(b, message_bus_account());
        two = message_bus_client(b, message_bus_account());
        check_get(one, "no error");
        check_get(two, "no error");
        l = link_of(one);
        check_max(l, 0, BUS_UNREAD_ACCOUNT_MAX, 1);
        check_max(l, 0, BUS_UNREAD_ACCOUNT_MAX + 1, 0);
        check_max(l, BUS_UNREAD_ALL_MAX - 8 * 1024 * 1024, 4 * 1024 * 1024, 1); /* half of what is left */
        check_max(l, BUS_UNREAD_ALL_MAX - 8 * 1024 * 1024, 4 * 1024 * 1024 + 1, 0);
        check_max(l, BUS_UNREAD_ALL_MAX * 2, BUS_UNREAD_ACCOUNT_MIN, 1);
        check_max(l, BUS_UNREAD_ALL_MAX * 2, BUS_UNREAD_ACCOUNT_MIN + 1, 0);
        sd_bus_close_unref(one);
        sd_bus_close_unref(two);
        b = message_bus_free(b);
}

/* What a caller chooses the length of is what counts. */
static void test_head(void) {
        char path[3001], name[256];
        sd_bus_message *m = NULL;
        size_t size = 0, least;
        sd_bus *client;

        begin();
        client = message_bus_client(b, message_bus_account());
        fill(path, sizeof(path), 'x');
        path[0] = '/';
        fill(name, sizeof(name), 'x');
        char *interface = strdup(name);
        interface[100] = '.';
        CHECK(sd_bus_message_new_method_call(client, &m, BUS_NAME, path, interface, name) >= 0);
        CHECK(sd_bus_message_append_array(m, 'y', path, sizeof(path)) >= 0 && sd_bus_message_seal(m, 1, 0) >= 0);
        least = sizeof(path) * 2 + sizeof(name) * 2;
        CHECK(message_size(m, SIZE_MAX, &size) >= 0);
        CHECK(size >= least && size < least + 256);
        CHECK_INT(message_size(m, least - 256, &size), -E2BIG);
        sd_bus_message_unref(m);
        free(interface);
        sd_bus_close_unref(client);
        b = message_bus_free(b);
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_WARNING);
        RUN(test_sizes, "C204: an answer counts for as many bytes as it has, or more");
        RUN(test_errors, "C204: an error is short whatever it is about, and counts, too");
        RUN(test_asked, "C204: a client that reads has nothing left to read");
        RUN(test_forged, "C204: one that reads nothing cannot answer what it is asked");
        RUN(test_pings, "C204: connections that do not answer leave errandd its other calls");
        RUN(test_refused, "C204: an account that reads nothing is refused, then not answered; others are");
        RUN(test_stuck, "C204: one that reads nothing leaves its account the rest, and calls above that wait until it goes");
        RUN(test_delayed_gone, "C204: calls that wait for room are bounded, and go with their client");
        RUN(test_terminals, "C204: forty terminals that an account asks for at once are all given");
        RUN(test_terminals_alone, "C204: and to clients that read their answer and nothing more");
        RUN(test_shares, "C204: accounts share what the bus daemon keeps of errandd");
        RUN(test_head, "C204: names and paths count for what a message has");
        return TEST_END();
}
