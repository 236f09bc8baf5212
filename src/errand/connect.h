/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds errandd and talks to it. Every function logs what is wrong, once, and returns EXIT_OK or the ExitCode that says it. */

#include <systemd/sd-bus.h>

#include "errand/exit.h"
#include "errand/request.h"

typedef enum ConnectMode {
        CONNECT_SYSTEM,   /* a project is a name */
        CONNECT_USER,
        CONNECT_EMBEDDED, /* one's own errandd, on its private socket */
} ConnectMode;

typedef struct Connection {
        sd_bus *bus;
        ConnectMode mode;
        char *place; /* for people: the path of the socket, or which bus it is */
        char *owner; /* errandd's unique name, which calls go to; NULL on its private socket */
        pid_t agent; /* who asks for passwords; 0: nobody */
        bool listens; /* to signals, by handlers that are not to be called in the midst of something else */
} Connection;

Connection *connection_free(Connection *c);
DEFINE_CLEANUP(Connection *, connection_free);

typedef enum ConnectFlags {
        CONNECT_START = 1 << 0,       /* there may be none yet: start one of one's own */
        CONNECT_START_SAYS = 1 << 1,  /* and say so, unless it was asked for */
        CONNECT_START_STATE = 1 << 2, /* only where an embedded errandd has left a state: its records are asked for */
        CONNECT_ASKS = 1 << 3,        /* it is about to do what may need an authorization, so somebody may be asked at this terminal */
} ConnectFlags;

/* The first that is there: on the system bus, on one's own session's, embedded; or the one that the request names. A bus that may not be used is an
 * error, and not taken for one where there is no errandd. */
int connection_open(const Request *q, ConnectFlags flags, Connection **ret);

/* Whether another errandd of one's own is there by now: EXIT_OK with *ret, or EXIT_NO_DAEMON without a word. */
int connection_again(const Request *q, Connection **ret);

/* The terminal is about to be something else's. */
void connection_leave_terminal(Connection *c);
/* errandd is another process now. */
int connection_set_owner(Connection *c, const char *owner);
/* On a message bus anybody can send a signal. */
bool connection_is_errandd(const Connection *c, sd_bus_message *m);
/* A call of it that may ask somebody. */
int connection_new_call(Connection *c, const char *path, const char *interface, const char *member, sd_bus_message **ret);

/* Looks at what a failed call said. `doing` is a phrase: "Failed to start session x". */
int bus_failure(const sd_bus_error *e, int r, const char *format, ...) _printf_(3, 4);

/* Calls and waits; ret may be NULL. As long as it takes: somebody may be typing a password, a session may need its grace period. */
int bus_call(Connection *c, const char *path, const char *interface, const char *member, const char *doing, sd_bus_message **ret,
             const char *types, ...);
int manager_call(Connection *c, const char *member, const char *doing, sd_bus_message **ret, const char *types, ...);
int session_call(Connection *c, const char *id, const char *member, const char *doing, sd_bus_message **ret, const char *types, ...);

/* Says what is wrong with an id that is none. EXIT_OK or EXIT_NOT_THERE. */
int check_id(const char *id);
