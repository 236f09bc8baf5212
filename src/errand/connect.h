/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds errandd and talks to it. Every function logs what is wrong, once, and returns EXIT_OK or the ExitCode that says it. */

#include <systemd/sd-bus.h>

#include "errand/exit.h"
#include "errand/request.h"

typedef struct Connection {
        sd_bus *bus;
        char *place;   /* for people: the path of the socket */
        bool embedded; /* one's own errandd, on its private socket */
} Connection;

Connection *connection_free(Connection *c);
DEFINE_CLEANUP(Connection *, connection_free);

typedef enum ConnectFlags {
        CONNECT_START = 1 << 0,       /* there may be none yet: start one of one's own */
        CONNECT_START_SAYS = 1 << 1,  /* and say so, unless it was asked for */
        CONNECT_START_STATE = 1 << 2, /* only where an embedded errandd has left a state: its records are asked for */
} ConnectFlags;

int connection_open(const Request *q, ConnectFlags flags, Connection **ret);

/* Looks at what a failed call said. `doing` is a phrase: "Failed to start session x". */
int bus_failure(const sd_bus_error *e, int r, const char *format, ...) _printf_(3, 4);

/* Calls and waits; ret may be NULL. As long as it takes: somebody may be typing a password, a session may need its grace period. */
int bus_call(Connection *c, const char *path, const char *interface, const char *member, const char *doing, sd_bus_message **ret,
             const char *types, ...);
int manager_call(Connection *c, const char *member, const char *doing, sd_bus_message **ret, const char *types, ...);
int session_call(Connection *c, const char *id, const char *member, const char *doing, sd_bus_message **ret, const char *types, ...);

/* Says what is wrong with an id that is none. EXIT_OK or EXIT_NOT_THERE. */
int check_id(const char *id);
