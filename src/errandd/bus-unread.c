/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errandd/bus-link.h"
#include "errandd/message-size.h"

/* What a client of a message bus has not taken yet. The bus daemon keeps for a client that does not read, and counts what it keeps against the sender:
 * one that is stopped would in the end keep errandd from being heard by anybody. A client answers a ping behind what was sent before it; libraries do so by
 * themselves. A connection of its own has its queue here instead. */

#define BUS_PEER "org.freedesktop.DBus.Peer"

static void ask(BusLink *l);

/* An error is an answer, too: of a client without that interface, or of a bus daemon whose policy lets no ping through and so tells nothing. */
static int on_answer(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        BusLink *l = userdata;

        l->ping = sd_bus_slot_unref(l->ping);
        l->unread -= l->pinged;
        l->pinged = 0;
        ask(l);
        return 1;
}

static void ask(BusLink *l) {
        sd_bus_message *m = NULL;
        int r;

        if (l->ping || l->unread < BUS_UNREAD_PING_BYTES)
                return;
        r = sd_bus_message_new_method_call(l->connection->bus, &m, l->name, "/", BUS_PEER, "Ping");
        if (r >= 0) /* however long it takes: that it has gone is told */
                r = sd_bus_call_async(l->connection->bus, &l->ping, m, on_answer, l, UINT64_MAX);
        sd_bus_message_unref(m);
        l->pinged = r >= 0 ? l->unread : 0;
}

void bus_unread_add(BusLink *l, sd_bus_message *m) {
        size_t size;

        if (!l->name || l->dead)
                return;
        if (message_size(m, BUS_UNREAD_MESSAGE_MAX, &size) < 0)
                size = BUS_UNREAD_MESSAGE_MAX;
        l->unread += size + BUS_UNREAD_HEADER_BYTES;
        ask(l);
}

void bus_unread_forget(BusLink *l) {
        l->ping = sd_bus_slot_unref(l->ping);
        l->unread = l->pinged = 0;
}
