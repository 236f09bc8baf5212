/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The daemon's face on D-Bus: a server on a private socket, one connection a client, no bus daemon between. */

#include "errandd/authorizer.h"
#include "errandd/manager.h"

typedef struct Bus Bus;

typedef struct BusOptions {
        Authorizer *authorizer; /* NULL: authorizer_same_uid() */
        ConfigMode mode;        /* how CheckConfiguration reads a file */
} BusOptions;

/* listen_fd is a listening AF_UNIX stream socket, taken on success; -EBADF: connections come by bus_adopt() alone. Becomes the manager's observer.
 * Free it before the manager. */
int bus_new(Manager *m, int listen_fd, const BusOptions *options, Bus **ret);
Bus *bus_free(Bus *b);
DEFINE_CLEANUP(Bus *, bus_free);

/* Serves a connected socket, taken always; uid is what the kernel said of its peer. -EMFILE: there are BUS_CONNECTIONS_MAX of them. */
int bus_adopt(Bus *b, int fd, uid_t uid);

size_t bus_connections(const Bus *b);

/* Prints the API as XML: one interface, or all of them for NULL. -ENOENT: there is none of that name. */
int bus_introspect(const char *interface, FILE *f);
