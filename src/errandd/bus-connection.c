/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>

#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/bus-objects.h"
#include "errandd/gate.h"
#include "shared/bus-vtable.h"

static const struct {
        const char *path, *interface;
        const sd_bus_vtable *vtable;
        sd_bus_object_find_t find;          /* NULL: one object at that very path */
        sd_bus_node_enumerator_t enumerate; /* NULL: its objects are never listed */
} objects[_BUS_OBJECT_KIND_MAX] = {
        [BUS_OBJECT_MANAGER] = {BUS_ROOT, BUS_MANAGER_INTERFACE, manager_vtable, NULL, NULL},
        [BUS_OBJECT_SESSION] = {BUS_SESSION_ROOT, BUS_SESSION_INTERFACE, session_vtable, session_find, session_enumerate},
        [BUS_OBJECT_GRANT] = {BUS_GRANT_ROOT, BUS_GRANT_INTERFACE, grant_vtable, grant_find, grant_enumerate},
        [BUS_OBJECT_RECEIPT] = {BUS_RECEIPT_ROOT, BUS_RECEIPT_INTERFACE, receipt_vtable, receipt_find, NULL},
};

int bus_introspect(const char *interface, FILE *f) {
        if (interface && bus_object_kind_of(interface) < 0)
                return -ENOENT;

        fputs("<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n"
              "\"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n<node>\n", f);
        for (size_t i = 0; i < ELEMENTSOF(objects); i++)
                if (!interface || streq(interface, objects[i].interface))
                        vtable_introspect(objects[i].interface, objects[i].vtable, f);
        fputs("</node>\n", f);
        return ferror(f) ? -EIO : 0;
}

/* busctl --address= and gdbus --address take every socket for a message bus's and begin with this; there is no name here to be known by. */
static int method_hello(sd_bus_message *m, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        return sd_bus_reply_method_return(m, "s", ":1.0");
}

static const sd_bus_vtable hello_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hello", "", "s", method_hello, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* A client's own ends with it; that of a message bus has its connection still. */
static bool connection_dead(const BusConnection *c) {
        return c->shared ? c->lost : !c->current || c->current->dead;
}

static void release_throttle(BusConnection *c) {
        c->throttle = sd_event_source_disable_unref(c->throttle);
        c->throttled = false;
        if (sd_bus_attach_event(c->bus, manager_event(c->face->manager), SD_EVENT_PRIORITY_NORMAL) < 0)
                bus_connection_lost(c);
}

/* The client took something: sends it more, and reads at most one message of it. */
static int throttle_handler(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events, void *userdata) {
        BusConnection *c = userdata;
        uint64_t n;

        if (connection_dead(c))
                return 0;
        if (sd_bus_process(c->bus, NULL) < 0 || sd_bus_get_n_queued_write(c->bus, &n) < 0)
                bus_connection_lost(c);
        else if (!connection_dead(c) && n <= BUS_QUEUED_LARGE_MAX)
                release_throttle(c);
        return 0;
}

static void throttle(BusConnection *c) {
        if (c->throttle)
                return;
        if (sd_bus_detach_event(c->bus) < 0 ||
            sd_event_add_io(manager_event(c->face->manager), &c->throttle, sd_bus_get_fd(c->bus), EPOLLOUT, throttle_handler, c) < 0)
                bus_connection_lost(c);
}

void bus_connection_connected(BusConnection *c) {
        c->connected = true;
        (void) sd_event_source_set_enabled(c->face->tidy, SD_EVENT_ONESHOT);
}

void bus_connection_watch_queue(BusConnection *c) {
        uint64_t n;

        if (c->throttled || connection_dead(c) || sd_bus_get_n_queued_write(c->bus, &n) < 0 || n <= BUS_QUEUED_MAX)
                return;
        c->throttled = true; /* the rest is done outside of the connection's own callbacks */
        (void) sd_event_source_set_enabled(c->face->tidy, SD_EVENT_ONESHOT);
}

bool bus_connection_postpone(BusConnection *c, sd_bus_message *m) {
        uint64_t n;

        if (connection_dead(c) || sd_bus_get_n_queued_write(c->bus, &n) < 0 || n <= BUS_QUEUED_LARGE_MAX)
                return false;
        if (sd_bus_enqueue_for_read(c->bus, m) < 0)
                bus_connection_lost(c);
        c->throttled = true;
        (void) sd_event_source_set_enabled(c->face->tidy, SD_EVENT_ONESHOT);
        return true;
}

/* What a client sent in one write with the end of its authentication is in libsystemd's buffer already, and no event tells of it. */
static void read_buffered(BusConnection *c) {
        c->connected = false;
        for (unsigned i = 0; i < BUS_BUFFERED_MAX && !connection_dead(c) && !c->throttled; i++) {
                int r = sd_bus_process(c->bus, NULL);

                if (r < 0)
                        bus_connection_lost(c);
                if (r <= 0)
                        break;
        }
}

void bus_connection_lost(BusConnection *c) {
        Bus *b = c->face;

        c->lost = true;
        for (BusLink *l = b->links; l; l = l->next)
                if (l->connection == c && !l->dead)
                        bus_link_close(l);
        if (c->shared && b->lost) {
                void (*lost)(void *userdata) = b->lost;

                b->lost = NULL; /* once */
                lost(b->options_userdata);
        }
}

void bus_connection_tidy(BusConnection *c) {
        if (c->connected)
                read_buffered(c);
        if (c->throttled && !connection_dead(c))
                throttle(c);
}

/* Kept, because a message bus's connection is not closed with the face. */
sd_bus_slot **bus_connection_slot(BusConnection *c) {
        return c->n_slots < BUS_SLOTS_MAX ? &c->slots[c->n_slots++] : NULL; /* NULL: libsystemd keeps it as long as the bus */
}

static int register_object(BusConnection *c, size_t i) {
        int r;

        if (objects[i].find)
                r = sd_bus_add_fallback_vtable(c->bus, bus_connection_slot(c), objects[i].path, objects[i].interface, objects[i].vtable,
                                               objects[i].find, c);
        else
                r = sd_bus_add_object_vtable(c->bus, bus_connection_slot(c), objects[i].path, objects[i].interface, objects[i].vtable,
                                             &c->target);
        if (r >= 0 && objects[i].enumerate)
                r = sd_bus_add_node_enumerator(c->bus, bus_connection_slot(c), objects[i].path, objects[i].enumerate, c);
        return r;
}

int bus_connection_register(BusConnection *c) {
        int r;

        r = sd_bus_add_filter(c->bus, bus_connection_slot(c), gate_filter, c);
        if (r >= 0 && !c->shared)
                r = sd_bus_add_object_vtable(c->bus, bus_connection_slot(c), "/org/freedesktop/DBus", "org.freedesktop.DBus", hello_vtable, c);
        if (r >= 0)
                r = sd_bus_add_object_manager(c->bus, bus_connection_slot(c), BUS_ROOT);
        if (r >= 0)
                r = sd_bus_add_object_vtable(c->bus, bus_connection_slot(c), "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1",
                                             log_control_vtable, c);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(objects); i++)
                r = register_object(c, i);
        return r;
}

BusConnection *bus_connection_new(Bus *b, bool shared) {
        BusConnection *c = calloc(1, sizeof(BusConnection));

        if (!c)
                return NULL;
        *c = (BusConnection){.face = b, .shared = shared, .next = b->connections};
        b->connections = c;
        return c;
}

BusConnection *bus_connection_free(BusConnection *c) {
        for (BusConnection **p = &c->face->connections; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        sd_event_source_disable_unref(c->throttle);
        stored_receipt_list_done(&c->receipt);
        say_done(&c->said);
        for (size_t i = 0; i < c->n_slots; i++)
                sd_bus_slot_unref(c->slots[i]);
        if (!c->shared)
                sd_bus_close_unref(c->bus);
        else {
                if (c->attached)
                        (void) sd_bus_detach_event(c->bus);
                sd_bus_unref(c->bus);
        }
        return mfree(c);
}
