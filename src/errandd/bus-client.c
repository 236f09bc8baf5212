/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/message-size.h"

/* The clients of a message bus, all behind one connection. Who a client is the bus daemon is asked for, once: the uid of the process that connected,
 * as the kernel told it then. Nothing that libsystemd could add from /proc by a pid takes part in it. */

static BusLink *find(BusConnection *c, const char *name) {
        for (BusLink *l = c->face->links; l; l = l->next)
                if (!l->dead && l->name && streq(l->name, name))
                        return l;
        return NULL;
}

/* To the front: the one at the end is who has been silent for longest. */
static void touch(BusLink *l) {
        Bus *b = l->connection->face;

        for (BusLink **p = &b->links; *p; p = &(*p)->next)
                if (*p == l) {
                        *p = l->next;
                        l->next = b->links;
                        b->links = l;
                        return;
                }
}

static bool make_room(Bus *b) {
        BusLink *idle = NULL;

        if (b->n_links < b->max_links)
                return true;
        for (BusLink *l = b->links; l; l = l->next)
                if (!l->dead && !bus_link_keeps(l) && !l->ping)
                        idle = l;
        if (!idle)
                return false;
        bus_link_close(idle);
        return true;
}

void bus_client_forget(BusLink *l) {
        l->lookup = sd_bus_slot_unref(l->lookup);
        for (size_t i = 0; i < l->n_unknown; i++)
                sd_bus_message_unref(l->unknown[i]);
        l->n_unknown = 0;
        l->connection->face->unknown_size -= l->unknown_size;
        l->unknown_size = 0;
}

static void refuse_unknown(BusLink *l) {
        for (size_t i = 0; i < l->n_unknown; i++)
                (void) sd_bus_reply_method_errorf(l->unknown[i], BUS_ERROR_PREFIX "NotPermitted", "%s",
                                                  "the bus does not tell which account you are");
        bus_link_close(l);
}

static int on_uid(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        BusLink *l = userdata;
        uint32_t uid = UID_NONE;

        l->lookup = sd_bus_slot_unref(l->lookup);
        if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_read_basic(m, 'u', &uid) < 0 || uid == UID_NONE) {
                refuse_unknown(l);
                return 1;
        }
        l->uid = uid;
        for (size_t i = 0; i < l->n_unknown; i++)
                if (sd_bus_enqueue_for_read(l->connection->bus, l->unknown[i]) < 0) {
                        bus_link_close(l);
                        return 1;
                }
        bus_client_forget(l);
        return 1;
}

static int client_new(BusConnection *c, const char *name, BusLink **ret, sd_bus_error *error) {
        BusLink *l;
        int r;

        if (!make_room(c->face))
                return bus_error_setf(error, BUS_ERROR_LIMIT, "%zu clients are being served", c->face->max_links);
        r = bus_link_new(c, name, UID_NONE, &l);
        if (r < 0)
                return r;
        /* It waits as long as libsystemd waits for any answer (25 s). */
        r = sd_bus_call_method_async(c->bus, &l->lookup, BUS_DRIVER, BUS_DRIVER_PATH, BUS_DRIVER, "GetConnectionUnixUser", on_uid, l, "s", name);
        if (r < 0) {
                bus_link_close(l);
                return r;
        }
        *ret = l;
        return 0;
}

/* Whose they are is not known yet, so they have a place of their own, and each client the part of it that its first call takes. */
static bool has_place(const BusLink *l, size_t size) {
        if (l->n_unknown == 0 && size <= BUS_UNKNOWN_FIRST_MAX)
                return true;
        return l->n_unknown < BUS_UNKNOWN_MESSAGES_MAX && l->unknown_size + size <= BUS_UNKNOWN_SIZE_MAX &&
               l->connection->face->unknown_size + size <= BUS_UNKNOWN_ALL_MAX;
}

static int keep(BusLink *l, sd_bus_message *m, sd_bus_error *error) {
        size_t size;
        int r;

        r = message_size(m, BUS_HELD_SIZE_MAX, &size);
        if (r == -E2BIG || (r >= 0 && !has_place(l, size)))
                return bus_error_set(error, BUS_ERROR_LIMIT, "too much came before your account was known; wait for the first answer");
        if (r < 0)
                return r;
        l->connection->face->unknown_size += size;
        l->unknown_size += size;
        l->unknown[l->n_unknown++] = sd_bus_message_ref(m);
        return -EINPROGRESS;
}

int bus_client_find(BusConnection *c, sd_bus_message *m, BusLink **ret, sd_bus_error *error) {
        const char *name = sd_bus_message_get_sender(m);
        BusLink *l;
        int r;

        if (!name || name[0] != ':')
                return bus_error_set(error, BUS_ERROR_NOT_PERMITTED, "the message does not say who sent it");
        l = find(c, name);
        if (!l) {
                r = client_new(c, name, &l, error);
                if (!l)
                        return r;
        }
        touch(l);
        if (l->uid == UID_NONE)
                return keep(l, m, error);
        *ret = l;
        return 0;
}

/* Unique names are never given twice, so whoever is not known here was never served or was thrown out. */
static int on_name_gone(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        BusConnection *c = userdata;
        const char *name, *owner;
        BusLink *l;

        if (!streq_ptr(sd_bus_message_get_sender(m), BUS_DRIVER) || sd_bus_message_read(m, "sss", &name, NULL, &owner) < 0 || *owner)
                return 0;
        l = find(c, name);
        if (l)
                bus_link_close(l);
        return 0;
}

int bus_new_on_bus(Manager *m, sd_bus *bus, const BusOptions *options, Bus **ret) {
        _cleanup_(bus_freep) Bus *b = NULL;
        BusConnection *c;
        int r;

        r = bus_prepare(m, options, &b);
        if (r < 0)
                return r;
        c = bus_connection_new(b, true);
        if (!c)
                return -ENOMEM;
        c->bus = sd_bus_ref(bus);
        if (!sd_bus_get_event(bus)) {
                r = sd_bus_attach_event(bus, manager_event(m), SD_EVENT_PRIORITY_NORMAL);
                if (r < 0)
                        return r;
                c->attached = true;
        }
        r = bus_unread_begin(bus);
        if (r < 0)
                return r;
        /* Of all names that vanish: one rule, while the bus daemon keeps but some hundred for a connection. It is asked before any question for a
         * uid, so that no client can vanish between. */
        r = sd_bus_add_match_async(bus, bus_connection_slot(c), "type='signal',sender='" BUS_DRIVER "',path='" BUS_DRIVER_PATH "',interface='" BUS_DRIVER
                                   "',member='NameOwnerChanged',arg2=''", on_name_gone, NULL, c);
        if (r >= 0)
                r = bus_connection_register(c);
        if (r < 0)
                return r;
        b->ready = true;
        *ret = TAKE_PTR(b);
        return 0;
}

int bus_request_name(sd_bus *bus, Fault *f) {
        int r = sd_bus_request_name(bus, BUS_NAME, 0);

        if (r >= 0 || r == -EALREADY)
                return 0;
        if (r == -EEXIST)
                return fault_set(f, ERROR_WRONG_STATE, "another errandd serves this bus: " BUS_NAME " has an owner already");
        if (r == -EACCES || r == -EPERM)
                return fault_set(f, ERROR_NOT_PERMITTED, "the bus does not let this account own " BUS_NAME "; is its policy file installed?");
        return fault_set(f, ERROR_SETUP, "the name " BUS_NAME " cannot be taken: %s", strerror(-r));
}
