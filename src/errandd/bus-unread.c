/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/message-size.h"

/* What a client of a message bus has not taken yet. The bus daemon keeps for a client that does not read, and counts what it keeps against the sender:
 * above max_incoming_bytes of that one it hears errandd no more, and nobody is served. A client answers a ping behind what was sent before it; libraries do so
 * by themselves. Who has not taken much is answered no more until it has. A connection of its own has its queue here instead. */

#define BUS_PEER "org.freedesktop.DBus.Peer"

static uint64_t total(const BusUnread *u) {
        return u->signals + u->answers + u->refusals;
}

static bool is_due(const BusLink *l) {
        return !l->ping && (l->unread.refusals > 0 || total(&l->unread) >= BUS_UNREAD_PING_BYTES);
}

/* An error is an answer, too: of a client without that interface, or of a bus daemon whose policy lets no ping through and so tells nothing. */
static int on_answer(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        BusLink *l = userdata;

        l->ping = sd_bus_slot_unref(l->ping);
        l->unread.signals -= l->pinged.signals;
        l->unread.answers -= l->pinged.answers;
        l->unread.refusals -= l->pinged.refusals;
        l->pinged = (BusUnread){};
        bus_unread_ask(l);
        return 1;
}

void bus_unread_ask(BusLink *l) {
        sd_bus_message *m = NULL;
        int r;

        if (!is_due(l))
                return;
        r = sd_bus_message_new_method_call(l->connection->bus, &m, l->name, "/", BUS_PEER, "Ping");
        if (r >= 0) /* however long it takes: that it has gone is told */
                r = sd_bus_call_async(l->connection->bus, &l->ping, m, on_answer, l, UINT64_MAX);
        sd_bus_message_unref(m);
        l->pinged = r >= 0 ? l->unread : (BusUnread){};
}

/* Later, behind the message that is counted here. */
static void add(BusLink *l, uint64_t *which, size_t size) {
        if (!l->name || l->dead)
                return;
        *which += size;
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

/* An account has as much as is left for all others together: however many join, the next one has something. */
int bus_unread_may_answer(const BusLink *l, sd_bus_error *error) {
        uint64_t account = 0, all = 0, max = BUS_UNREAD_ACCOUNT_MIN;

        if (!l->name)
                return 1; /* its own connection's queue is bounded */
        for (const BusLink *i = l->connection->face->links; i; i = i->next) {
                all += total(&i->unread);
                if (i->uid == l->uid)
                        account += total(&i->unread);
        }
        if (all < BUS_UNREAD_ALL_MAX)
                max = MAX(max, MIN(BUS_UNREAD_ALL_MAX - all, BUS_UNREAD_ACCOUNT_MAX));
        if (account <= max)
                return 1;
        if (l->unread.refusals > BUS_UNREAD_REFUSALS_MAX)
                return 0;
        return bus_error_setf(error, BUS_ERROR_LIMIT, "%llu KiB of answers and signals wait for connections of your account; let each read and answer " BUS_PEER ".Ping, or close it",
                              (unsigned long long) account / 1024);
}

void bus_unread_forget(BusLink *l) {
        l->ping = sd_bus_slot_unref(l->ping);
        l->unread = l->pinged = (BusUnread){};
}
