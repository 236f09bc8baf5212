/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "basic/text.h"
#include "errandd/bus-link.h"

/* What a client has taken by the bus daemon's own word: for those that answer no ping, since they never dispatch what comes between their calls, or wait
 * for something else. It is asked only while calls of the account are delayed, or no further ping may be sent, and about connections with much to take. A
 * bus daemon that does not say, since it was built without its statistics or its policy does not let errandd ask, answers with an error: there the pings
 * alone count. */

#define BUS_STATS "org.freedesktop.DBus.Debug.Stats"

static bool is_taken(sd_bus_message *m) {
        const char *name;
        uint32_t bytes;
        int r;

        if (sd_bus_message_is_method_error(m, NULL))
                return false;
        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        while (r >= 0 && sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                r = sd_bus_message_read_basic(m, 's', &name);
                if (r >= 0 && streq(name, "OutgoingBytes"))
                        return sd_bus_message_read(m, "v", "u", &bytes) > 0 && bytes == 0;
                if (r >= 0)
                        r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return false;
}

static int on_stats(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        BusLink *l = userdata;
        BusUnread looked = l->looked;

        l->look = sd_bus_slot_unref(l->look);
        l->looked = (BusUnread){};
        if (is_taken(m))
                bus_unread_taken(l, looked);
        return 1;
}

static void look(BusLink *l) {
        int r = sd_bus_call_method_async(l->connection->bus, &l->look, BUS_DRIVER, BUS_DRIVER_PATH, BUS_STATS, "GetConnectionStats", on_stats, l, "s", l->name);

        l->looked = r >= 0 ? l->unread : (BusUnread){};
}

static bool may_look(const BusLink *l) {
        return l->name && !l->dead && !l->look && bus_unread_total(l) >= BUS_TAKEN_LOOK_BYTES;
}

void bus_taken_look(const BusLink *l) {
        for (BusLink *i = l->connection->face->links; i; i = i->next)
                if (i->uid == l->uid && may_look(i))
                        look(i);
}

void bus_taken_look_at(BusLink *l) {
        usec_t now = now_monotonic();

        if (!may_look(l) || now < l->look_time + BUS_TAKEN_USEC)
                return;
        l->look_time = now;
        look(l);
}

void bus_taken_forget(BusLink *l) {
        l->look = sd_bus_slot_unref(l->look);
        l->looked = (BusUnread){};
}
