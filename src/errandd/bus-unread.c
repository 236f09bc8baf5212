/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/random.h>

#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/message-size.h"
#include "shared/bus-object.h"

/* What a client of a message bus has not taken yet. The bus daemon keeps for a client that does not read, and counts what it keeps against the sender:
 * above max_incoming_bytes of that one it hears errandd no more, and nobody is served. A client answers a ping behind what was sent before it; libraries do so
 * by themselves. The calls of an account that has not taken much are delayed (bus-delayed.c) until it has, or refused. A connection of its own has its
 * queue here instead. */

#define BUS_PEER "org.freedesktop.DBus.Peer"

static uint64_t total(const BusUnread *u) {
        return u->signals + u->answers + u->refusals;
}

/* After each change: what all have is known without asking each. */
static void count(BusLink *l) {
        uint64_t now = total(&l->unread) + l->reserved;

        l->connection->face->unread += now - l->counted;
        l->counted = now;
}

static bool is_due(const BusLink *l) {
        return !l->ping && (l->unread.refusals > 0 || total(&l->unread) >= BUS_UNREAD_PING_BYTES);
}

static void subtract(BusUnread *u, BusUnread n) {
        u->signals -= MIN(u->signals, n.signals);
        u->answers -= MIN(u->answers, n.answers);
        u->refusals -= MIN(u->refusals, n.refusals);
}

void bus_unread_taken(BusLink *l, BusUnread n) {
        subtract(&l->unread, n);
        subtract(&l->pinged, n); /* what was sent first is in both */
        subtract(&l->looked, n);
        count(l);
        bus_delayed_wake(l, DELAY_ROOM);
}

uint64_t bus_unread_total(const BusLink *l) {
        return total(&l->unread);
}

/* A ping was answered, or is of a client that has gone: whoever waits for that may be asked instead. */
static void release_ping(BusLink *l) {
        if (!l->ping)
                return;
        l->ping = sd_bus_slot_unref(l->ping);
        for (BusLink *i = l->connection->face->links; i; i = i->next)
                i->ping_waits = false;
        (void) sd_event_source_set_enabled(l->connection->face->tidy, SD_EVENT_ONESHOT);
}

/* An error is an answer, too: of a client without that interface, or of a bus daemon whose policy lets no ping through and so tells nothing. */
static int on_answer(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        BusLink *l = userdata;
        BusUnread pinged = l->pinged;

        release_ping(l);
        l->pinged = (BusUnread){};
        bus_unread_taken(l, pinged);
        return 1;
}

/* The bus daemon lets only so many calls of errandd's be without an answer, and refuses it all others then: also questions to polkit. */
static bool may_ask(const BusLink *l) {
        size_t account = 0, all = 0;

        for (const BusLink *i = l->connection->face->links; i; i = i->next)
                if (i->ping) {
                        all++;
                        account += i->uid == l->uid;
                }
        return account < BUS_UNREAD_PINGS_ACCOUNT_MAX && all < (account == 0 ? BUS_UNREAD_PINGS_FIRST_MAX : BUS_UNREAD_PINGS_MAX);
}

/* A ping is answered by its number alone: a client that reads nothing could say that it has read all, if that could be told from the numbers of messages that
 * it has read over another connection. So pings have numbers by chance, up to this one, and all other messages the next ones: libsystemd counts on from the
 * highest that there was. */
#define PING_NUMBER_MAX (UINT32_C(1) << 31)

int bus_unread_begin(sd_bus *bus) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, BUS_DRIVER, BUS_DRIVER_PATH, BUS_PEER, "Ping");
        if (r >= 0)
                r = sd_bus_message_set_expect_reply(m, false);
        if (r >= 0)
                r = sd_bus_message_seal(m, PING_NUMBER_MAX, 0);
        return r < 0 ? r : sd_bus_send(bus, m, NULL);
}

static int seal(sd_bus_message *m) {
        uint32_t number;

        if (getrandom(&number, sizeof(number), 0) != (ssize_t) sizeof(number))
                return -EIO;
        return sd_bus_message_seal(m, number % PING_NUMBER_MAX + UINT64_C(1), UINT64_MAX); /* however long it takes: that it has gone is told */
}

static void ask(BusLink *l) {
        sd_bus_message *m = NULL;
        int r;

        l->ping_waits = l->ping_waits || !may_ask(l);
        if (l->ping_waits) {
                bus_taken_look_at(l);
                return;
        }
        r = sd_bus_message_new_method_call(l->connection->bus, &m, l->name, "/", BUS_PEER, "Ping");
        if (r >= 0)
                r = seal(m);
        if (r >= 0)
                r = sd_bus_call_async(l->connection->bus, &l->ping, m, on_answer, l, UINT64_MAX);
        sd_bus_message_unref(m);
        l->pinged = r >= 0 ? l->unread : (BusUnread){};
}

void bus_unread_ask(BusLink *l) {
        if (is_due(l))
                ask(l);
}

/* Later, behind the message that is counted here. */
static void add(BusLink *l, uint64_t *which, size_t size) {
        if (!l->name || l->dead)
                return;
        *which += size;
        count(l);
        if (is_due(l))
                (void) sd_event_source_set_enabled(l->connection->face->tidy, SD_EVENT_ONESHOT);
}

void bus_unread_add_signal(BusLink *l, sd_bus_message *m) {
        size_t size = BUS_UNREAD_MESSAGE_MAX;

        (void) message_size(m, BUS_UNREAD_MESSAGE_MAX, &size);
        add(l, &l->unread.signals, size);
}

void bus_unread_add_answer(BusLink *l, size_t size) {
        add(l, &l->unread.answers, size);
}

void bus_unread_add_objects(BusLink *l, size_t n) {
        sd_bus_message *m = sd_bus_get_current_message(l->connection->bus);
        bool names = m && streq_ptr(sd_bus_message_get_member(m), "Introspect");

        bus_unread_add_answer(l, n * (names ? BUS_UNREAD_NAME_BYTES : BUS_UNREAD_OBJECT_BYTES));
}

void bus_unread_add_refusal(BusLink *l) {
        add(l, &l->unread.refusals, BUS_UNREAD_CALL_BYTES);
}

int bus_link_answer(BusLink *l, sd_bus_message *reply) {
        size_t size = BUS_UNREAD_ANSWER_MAX;
        int r = sd_bus_message_send(reply);

        if (r >= 0) {
                (void) message_size(reply, BUS_UNREAD_ANSWER_MAX, &size);
                bus_unread_add_answer(l, size);
        }
        return r;
}

bool bus_unread_is_asked(const BusLink *l) {
        for (const BusLink *i = l->connection->face->links; i; i = i->next)
                if (i->uid == l->uid && i->ping && total(&i->unread) > 0)
                        return true;
        return false;
}

/* Those with much to read before those with little: not all may be asked at once. */
void bus_unread_ask_account(const BusLink *l) {
        for (int due = 1; due >= 0; due--)
                for (BusLink *i = l->connection->face->links; i; i = i->next)
                        if (i->uid == l->uid && i->name && !i->dead && !i->ping && total(&i->unread) > 0 && is_due(i) == (due > 0))
                                ask(i);
}

void bus_unread_reserve(BusLink *l, uint64_t size) {
        l->reserved += size;
        count(l);
}

void bus_unread_give_up(BusLink *l, uint64_t size) {
        l->reserved -= size;
        count(l);
}

void bus_unread_release(BusLink *l, uint64_t size) {
        bus_unread_give_up(l, size);
        if (size > 0)
                bus_delayed_wake(l, DELAY_ROOM);
}

/* An account has as much as is left for all others together: however many join, the next one has something. */
static bool account_has_room(const BusLink *l, uint64_t *ret_account) {
        uint64_t account = 0, all = l->connection->face->unread, max = BUS_UNREAD_ACCOUNT_MIN;

        if (all <= max) { /* as nearly always: no account has more */
                *ret_account = all;
                return true;
        }
        for (const BusLink *i = l->connection->face->links; i; i = i->next)
                account += i->uid == l->uid ? i->counted : 0;
        if (all < BUS_UNREAD_ALL_MAX)
                max = MAX(max, MIN(BUS_UNREAD_ALL_MAX - all, BUS_UNREAD_ACCOUNT_MAX));
        *ret_account = account;
        return account <= max;
}

bool bus_unread_has_room(const BusLink *l) {
        uint64_t account;

        return account_has_room(l, &account);
}

static const BusLink *find_worst(const BusLink *l) {
        const BusLink *worst = l;

        for (const BusLink *i = l->connection->face->links; i; i = i->next)
                if (i->uid == l->uid && total(&i->unread) > total(&worst->unread))
                        worst = i;
        return worst;
}

int bus_unread_may_answer(const BusLink *l, sd_bus_error *error) {
        uint64_t account;

        if (!l->name)
                return 1; /* its own connection's queue is bounded */
        if (account_has_room(l, &account))
                return 1;
        if (l->unread.refusals > BUS_UNREAD_REFUSALS_MAX)
                return 0;
        return bus_error_setf(error, BUS_ERROR_LIMIT, "%llu KiB of answers and signals wait to be read by connections of your account, most by %s: let it read, and answer "
                              BUS_PEER ".Ping, or close it (\"busctl status %s\" tells what it is)", (unsigned long long) account / 1024,
                              find_worst(l)->name, find_worst(l)->name);
}

void bus_unread_forget(BusLink *l) {
        release_ping(l);
        l->unread = l->pinged = (BusUnread){};
        count(l);
}
