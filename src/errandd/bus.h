/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The daemon's face on D-Bus: a server on a private socket, one connection a client and no bus daemon between, or one connection to a message
 * bus with all of its clients. */

#include <systemd/sd-bus.h>

#include "errandd/authorizer.h"
#include "errandd/manager.h"

typedef struct Bus Bus;

typedef struct BusOptions {
        Authorizer *authorizer; /* NULL: authorizer_same_uid() */
        void (*lost)(void *userdata); /* the message bus has gone, and nobody is served any more; may be NULL */
        void (*reloaded)(const Fault *fault, void *userdata); /* whoever asked: the configuration was read again, or is refused; may be NULL */
        void *userdata;
} BusOptions;

/* listen_fd is a listening AF_UNIX stream socket, taken on success; -EBADF: connections come by bus_adopt() alone. Becomes the manager's observer.
 * Free it before the manager. options may be NULL: none of them. */
int bus_new(Manager *m, int listen_fd, const BusOptions *options, Bus **ret);
/* Serves the clients of a message bus on `bus`, a connection that has begun; it is referenced, and attached to the manager's event loop unless it is
 * already. Calls and matches of others on it work on. Clients come once the name is there, so bus_request_name() comes last. */
int bus_new_on_bus(Manager *m, sd_bus *bus, const BusOptions *options, Bus **ret);

#define BUS_NAME "org.errand1"

/* Takes the name for good: nobody may replace its owner, and nobody waits for it. Blocks for one turn of the bus daemon. A negative errno with a
 * sentence in *f: another owner (ERROR_WRONG_STATE), not allowed to this account (ERROR_NOT_PERMITTED). */
int bus_request_name(sd_bus *bus, Fault *f);

Bus *bus_free(Bus *b);
DEFINE_CLEANUP(Bus *, bus_free);

/* Serves a connected socket, taken always; uid is what the kernel said of its peer. -EMFILE: there are BUS_CONNECTIONS_MAX of them. */
int bus_adopt(Bus *b, int fd, uid_t uid);

/* Reads the configuration again, with what the bus's face itself takes from it; done as manager_reload() has it, may be NULL, and is called after what the
 * options have for all of them. */
int bus_reload(Bus *b, ReloadDone done, void *userdata, Fault *f);

size_t bus_connections(const Bus *b);

/* Prints the API as XML: one interface, or all of them for NULL. -ENOENT: there is none of that name. */
int bus_introspect(const char *interface, FILE *f);
