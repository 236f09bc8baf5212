/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-link.h"
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

Caller bus_link_caller(const BusLink *l) {
        return (Caller){.uid = l->uid, .operator = l->bus->authorizer->operator(l->bus->authorizer, l->uid)};
}

bool bus_link_may_see(BusLink *l, const Session *s) {
        Caller c = bus_link_caller(l);

        return s == l->admitted || session_may_see(s, &c);
}

Session *bus_link_find(BusLink *l, const char *id) {
        Session *s = manager_find(l->bus->manager, id);

        return s && bus_link_may_see(l, s) ? s : NULL;
}

bool bus_link_receipt(BusLink *l, uint64_t number, const StoredReceipt **ret) {
        ReceiptFilter filter = RECEIPT_FILTER_ANY;
        Fault f = {};
        int r;

        if (number >= INT64_MAX)
                return false; /* SQLite's numbers end there */
        if (l->receipt.n_receipts == 0 || l->receipt.receipts[0].number != number) {
                stored_receipt_list_done(&l->receipt);
                filter.before = number + 1;
                filter.limit = 1;
                r = manager_receipts(l->bus->manager, &filter, &l->receipt, &f);
                if (r < 0) {
                        log_warning_errno(r, "Failed to look up receipt %llu, taking it as not there: %s", (unsigned long long) number,
                                          f.text ?: "no reason was given");
                        fault_done(&f);
                        return false;
                }
        }
        if (l->receipt.n_receipts == 0 || l->receipt.receipts[0].number != number)
                return false;
        *ret = l->receipt.receipts;
        return true;
}

int bus_not_found(sd_bus_error *error, const char *what) {
        return bus_error_setf(error, BUS_ERROR_NOT_FOUND, "there is no such %s, or it is not yours", what);
}

int bus_fault(sd_bus_error *error, Fault *f, int r) {
        _Static_assert((int) _BUS_ERROR_MAX == (int) _ERROR_CODE_MAX, "the bus names every code");
        _Static_assert((int) BUS_ERROR_STORAGE == (int) ERROR_STORAGE && (int) BUS_ERROR_LIMIT == (int) ERROR_LIMIT &&
                       (int) BUS_ERROR_NOT_FOUND == (int) ERROR_NOT_FOUND && (int) BUS_ERROR_SETUP == (int) ERROR_SETUP &&
                       (int) BUS_ERROR_CONFIGURATION == (int) ERROR_CONFIGURATION, "in the same order");

        if (f->code != ERROR_NONE)
                r = bus_error_set(error, (BusError) f->code, f->text);
        else
                r = sd_bus_error_set_errno(error, r);
        fault_done(f);
        return r;
}

static BusLink *link_free(BusLink *l) {
        gate_forget(l);
        operation_forget(l);
        sd_event_source_disable_unref(l->throttle);
        stored_receipt_list_done(&l->receipt);
        sd_bus_close_unref(l->connection);
        free(l);
        return NULL;
}

void bus_link_close(BusLink *l) {
        l->dead = true;
        l->subscribed = false;
        gate_forget(l);
        operation_forget(l);
        (void) sd_event_source_set_enabled(l->bus->tidy, SD_EVENT_ONESHOT);
}

static void link_release_throttle(BusLink *l) {
        l->throttle = sd_event_source_disable_unref(l->throttle);
        l->throttled = false;
        if (sd_bus_attach_event(l->connection, manager_event(l->bus->manager), SD_EVENT_PRIORITY_NORMAL) < 0)
                bus_link_close(l);
}

/* The client took something: sends it more, and reads at most one message of it. */
static int throttle_handler(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events, void *userdata) {
        BusLink *l = userdata;
        uint64_t n;

        if (l->dead)
                return 0;
        if (sd_bus_process(l->connection, NULL) < 0 || sd_bus_get_n_queued_write(l->connection, &n) < 0)
                bus_link_close(l);
        else if (!l->dead && n <= BUS_QUEUED_LARGE_MAX)
                link_release_throttle(l);
        return 0;
}

static void link_throttle(BusLink *l) {
        if (l->throttle)
                return;
        if (sd_bus_detach_event(l->connection) < 0 ||
            sd_event_add_io(manager_event(l->bus->manager), &l->throttle, sd_bus_get_fd(l->connection), EPOLLOUT, throttle_handler, l) < 0)
                bus_link_close(l);
}

void bus_link_connected(BusLink *l) {
        l->connected = true;
        (void) sd_event_source_set_enabled(l->bus->tidy, SD_EVENT_ONESHOT);
}

void bus_link_watch_queue(BusLink *l) {
        uint64_t n;

        if (l->throttled || l->dead || sd_bus_get_n_queued_write(l->connection, &n) < 0 || n <= BUS_QUEUED_MAX)
                return;
        l->throttled = true; /* the rest is done outside of the connection's own callbacks */
        (void) sd_event_source_set_enabled(l->bus->tidy, SD_EVENT_ONESHOT);
}

bool bus_link_postpone(BusLink *l, sd_bus_message *m) {
        uint64_t n;

        if (l->dead || sd_bus_get_n_queued_write(l->connection, &n) < 0 || n <= BUS_QUEUED_LARGE_MAX)
                return false;
        if (sd_bus_enqueue_for_read(l->connection, m) < 0)
                bus_link_close(l);
        l->throttled = true;
        (void) sd_event_source_set_enabled(l->bus->tidy, SD_EVENT_ONESHOT);
        return true;
}

/* What a client sent in one write with the end of its authentication is in libsystemd's buffer already, and no event tells of it. */
static void link_read_buffered(BusLink *l) {
        l->connected = false;
        for (unsigned i = 0; i < BUS_BUFFERED_MAX && !l->dead && !l->throttled; i++) {
                int r = sd_bus_process(l->connection, NULL);

                if (r < 0)
                        bus_link_close(l);
                if (r <= 0)
                        break;
        }
}

static int tidy_handler(_unused_ sd_event_source *source, void *userdata) {
        Bus *b = userdata;

        for (BusLink **p = &b->links; *p;) {
                BusLink *l = *p;

                if (l->connected)
                        link_read_buffered(l);
                if (l->throttled && !l->dead)
                        link_throttle(l);
                if (!l->dead) {
                        p = &l->next;
                        continue;
                }
                *p = l->next;
                b->n_links--;
                link_free(l);
        }
        return 0;
}

static int link_register(BusLink *l) {
        int r;

        r = sd_bus_add_filter(l->connection, NULL, gate_filter, l);
        if (r >= 0)
                r = sd_bus_add_object_vtable(l->connection, NULL, "/org/freedesktop/DBus", "org.freedesktop.DBus", hello_vtable, l);
        if (r >= 0)
                r = sd_bus_add_object_manager(l->connection, NULL, BUS_ROOT);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(objects); i++) {
                if (objects[i].find)
                        r = sd_bus_add_fallback_vtable(l->connection, NULL, objects[i].path, objects[i].interface, objects[i].vtable,
                                                       objects[i].find, l);
                else
                        r = sd_bus_add_object_vtable(l->connection, NULL, objects[i].path, objects[i].interface, objects[i].vtable,
                                                     &l->target);
                if (r >= 0 && objects[i].enumerate)
                        r = sd_bus_add_node_enumerator(l->connection, NULL, objects[i].path, objects[i].enumerate, l);
        }
        return r;
}

/* The fd is the connection's once it is set, whatever fails later. */
static int link_connect(BusLink *l, int *fd) {
        int buffer = BUS_BUFFER_SIZE; /* libsystemd has made it 8 MiB */
        sd_id128_t id;
        int r;

        r = sd_id128_randomize(&id);
        if (r >= 0)
                r = sd_bus_new(&l->connection);
        if (r >= 0)
                r = sd_bus_set_fd(l->connection, *fd, *fd);
        if (r < 0)
                return r;
        *fd = -EBADF;

        r = sd_bus_set_server(l->connection, true, id);
        if (r >= 0)
                r = sd_bus_negotiate_fds(l->connection, true);
        if (r >= 0)
                r = sd_bus_set_connected_signal(l->connection, true);
        if (r >= 0)
                r = sd_bus_set_description(l->connection, "errandd-client");
        if (r >= 0)
                r = link_register(l);
        if (r >= 0)
                r = sd_bus_start(l->connection);
        if (r >= 0)
                r = sd_bus_attach_event(l->connection, manager_event(l->bus->manager), SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0 && setsockopt(sd_bus_get_fd(l->connection), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) < 0)
                r = negative_errno();
        return r;
}

int bus_adopt(Bus *b, int fd, uid_t uid) {
        _cleanup_close_ int owned = fd;
        BusLink *l;
        int r;

        if (b->n_links >= BUS_CONNECTIONS_MAX)
                return -EMFILE;
        r = fd_nonblock(owned, true);
        if (r < 0)
                return r;
        l = calloc(1, sizeof(BusLink));
        if (!l)
                return -ENOMEM;
        l->bus = b;
        l->uid = uid;
        l->target.link = l;

        r = link_connect(l, &owned);
        if (r < 0) {
                link_free(l);
                return r;
        }
        l->next = b->links;
        b->links = l;
        b->n_links++;
        return 0;
}

static int accept_handler(_unused_ sd_event_source *source, int fd, _unused_ uint32_t events, void *userdata) {
        _cleanup_close_ int connection = -EBADF;
        struct ucred peer = {};
        socklen_t size = sizeof(peer);
        Bus *b = userdata;
        int r;

        connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (connection < 0) {
                if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                        log_warning_errno(errno, "Failed to accept a connection on the private bus, trying again: %m");
                return 0;
        }
        if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || size != sizeof(peer) || !authorizer_peer_allowed(peer.uid)) {
                log_warning("A process of uid %u may not use the private bus of uid %u, closing its connection", (unsigned) peer.uid,
                            (unsigned) geteuid());
                return 0;
        }
        r = bus_adopt(b, TAKE_FD(connection), peer.uid);
        if (r == -EMFILE)
                log_warning("There are %u connections to the private bus, refusing one more", BUS_CONNECTIONS_MAX);
        else if (r < 0)
                log_warning_errno(r, "Failed to serve a connection to the private bus, closing it: %m");
        return 0;
}

static int bus_prepare(Bus *b, int listen_fd) {
        sd_event *event = manager_event(b->manager);
        int r;

        r = sd_event_add_defer(event, &b->tidy, tidy_handler, b);
        if (r >= 0)
                r = sd_event_source_set_enabled(b->tidy, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(b->tidy, SD_EVENT_PRIORITY_IMPORTANT);
        if (r < 0)
                return r;
        if (listen_fd >= 0) {
                r = fd_nonblock(listen_fd, true);
                if (r >= 0)
                        r = sd_event_add_io(event, &b->accept, listen_fd, EPOLLIN, accept_handler, b);
                /* An accept that fails for want of fds would otherwise come back at once, for ever. */
                if (r >= 0)
                        r = sd_event_source_set_ratelimit(b->accept, USEC_PER_SEC, BUS_ARRIVALS_MAX);
                if (r < 0)
                        return r;
        }
        return subscribe_begin(b);
}

int bus_new(Manager *m, int listen_fd, const BusOptions *options, Bus **ret) {
        _cleanup_(bus_freep) Bus *b = calloc(1, sizeof(Bus));
        int r;

        if (!b)
                return -ENOMEM;
        b->manager = m;
        b->listen_fd = -EBADF;
        b->authorizer = options && options->authorizer ? options->authorizer : authorizer_same_uid();
        b->mode = options ? options->mode : CONFIG_EMBEDDED;
        r = bus_prepare(b, listen_fd);
        if (r < 0)
                return r;
        b->listen_fd = listen_fd;
        b->ready = true;
        *ret = TAKE_PTR(b);
        return 0;
}

Bus *bus_free(Bus *b) {
        if (!b)
                return NULL;
        subscribe_end(b);
        sd_event_source_disable_unref(b->accept);
        while (b->links) {
                BusLink *l = b->links;

                b->links = l->next;
                link_free(l); /* what the kernel has, arrives; a client that does not read cannot delay the end */
        }
        sd_event_source_disable_unref(b->tidy);
        safe_close(b->listen_fd);
        free(b);
        return NULL;
}

size_t bus_connections(const Bus *b) {
        return b->n_links;
}
