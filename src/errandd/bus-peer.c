/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "errandd/bus-link.h"

/* The server on a private socket: each client has a connection of its own, whose peer the kernel names. */

/* The fd is the connection's once it is set, whatever fails later. */
static int connect_peer(BusConnection *c, int *fd) {
        int buffer = BUS_BUFFER_SIZE; /* libsystemd has made it 8 MiB */
        sd_id128_t id;
        int r;

        r = sd_id128_randomize(&id);
        if (r >= 0)
                r = sd_bus_new(&c->bus);
        if (r >= 0)
                r = sd_bus_set_fd(c->bus, *fd, *fd);
        if (r < 0)
                return r;
        *fd = -EBADF;

        r = sd_bus_set_server(c->bus, true, id);
        if (r >= 0)
                r = sd_bus_negotiate_fds(c->bus, true);
        if (r >= 0)
                r = sd_bus_set_connected_signal(c->bus, true);
        if (r >= 0)
                r = sd_bus_set_description(c->bus, "errandd-client");
        if (r >= 0)
                r = bus_connection_register(c);
        if (r >= 0)
                r = sd_bus_start(c->bus);
        if (r >= 0)
                r = sd_bus_attach_event(c->bus, manager_event(c->face->manager), SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0 && setsockopt(sd_bus_get_fd(c->bus), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) < 0)
                r = negative_errno();
        return r;
}

int bus_adopt(Bus *b, int fd, uid_t uid) {
        _cleanup_close_ int owned = fd;
        BusConnection *c;
        BusLink *l;
        int r;

        if (b->n_links >= BUS_CONNECTIONS_MAX)
                return -EMFILE;
        r = fd_nonblock(owned, true);
        if (r < 0)
                return r;
        c = bus_connection_new(b, false);
        if (!c)
                return -ENOMEM;
        r = connect_peer(c, &owned);
        if (r >= 0)
                r = bus_link_new(c, NULL, uid, &l);
        if (r < 0) {
                bus_connection_free(c);
                return r;
        }
        c->current = c->target.link = l;
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

int bus_new(Manager *m, int listen_fd, const BusOptions *options, Bus **ret) {
        _cleanup_(bus_freep) Bus *b = NULL;
        int r;

        r = bus_prepare(m, options, &b);
        if (r >= 0 && listen_fd >= 0) {
                r = fd_nonblock(listen_fd, true);
                if (r >= 0)
                        r = sd_event_add_io(manager_event(m), &b->accept, listen_fd, EPOLLIN, accept_handler, b);
                /* An accept that fails for want of fds would otherwise come back at once, for ever. */
                if (r >= 0)
                        r = sd_event_source_set_ratelimit(b->accept, USEC_PER_SEC, BUS_ARRIVALS_MAX);
        }
        if (r < 0)
                return r;
        b->listen_fd = listen_fd;
        b->ready = true;
        *ret = TAKE_PTR(b);
        return 0;
}
