/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One session's broker: its sockets, configuration and connections. One thread runs the loop; lookups and receipts have theirs. */

#include <systemd/sd-event.h>

#include "broker/connection.h"
#include "broker/receipts.h"
#include "broker/setup.h"

typedef struct Control Control;   /* control.c: the supervisor's connection */
typedef struct Grants Grants;     /* grants.c */
typedef struct Resolver Resolver; /* resolve.c */

struct Broker {
        sd_event *event;
        Setup *setup;         /* NULL before setup */
        Receipts *receipts;
        Grants *grants;
        Resolver *resolver;
        Control *control;
        int session_socket;   /* where a session hands its listener over; closed after it did */
        int listener;         /* the proxy listener, in the session's namespace; -EBADF before the hand-over and after close */
        uint64_t own_netns;   /* SO_NETNS_COOKIE of a socket of ours */
        bool closed;          /* close was said: credential and stand-ins are dead; tunnels go on */
        Connection *connections;
        size_t n_connections;
};
