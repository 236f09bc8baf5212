/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One session's broker: its sockets, configuration and connections. One thread runs the loop; lookups, receipts and the listener
 * have theirs. */

#include <systemd/sd-event.h>

#include "broker/connection.h"
#include "broker/limits.h"
#include "broker/pipes.h"
#include "broker/receipts.h"
#include "broker/refusal-log.h"
#include "broker/repeats.h"
#include "broker/setup.h"

typedef struct Acceptor Acceptor; /* acceptor.c: the listener's thread */
typedef struct Control Control;   /* control.c: the supervisor's connection */
typedef struct Grants Grants;     /* grants.c */
typedef struct Handover Handover; /* handover.c: the session socket */
typedef struct Keep Keep;         /* keep.c: what outlives the process */
typedef struct Resolver Resolver; /* resolve.c */

struct Broker {
        sd_event *event;
        Setup *setup;  /* NULL before setup */
        Secret *basic; /* what the session's Proxy-Authorization carries after "Basic "; NULL before setup and after close */
        Receipts *receipts;
        Grants *grants;
        Resolver *resolver;
        Control *control;
        Handover *handover;
        Keep *keep;              /* NULL without a service manager and before setup */
        Acceptor *acceptor;      /* NULL before the hand-over and after close; owns the listener */
        uint32_t listen_address; /* of the listener, network byte order */
        uint16_t listen_port;
        uint64_t own_netns; /* SO_NETNS_COOKIE of a socket of ours */
        bool closed;        /* close was said: credential and stand-ins are dead; tunnels go on */
        Connection *connections;
        size_t n_connections, connections_max;
        size_t n_tunnels;
        size_t held, held_most;         /* bytes of buffers, against HELD_MAX; since memory was last given back */
        uint64_t n_accepted, n_refused; /* for stats */
        usec_t full_logged;             /* when the log last said that connections are turned away */
        PipePool pipes;
        Repeats repeats; /* of calls that capabilities do not name */
        RefusalLog refusal_log;
        sd_event_source *idle;
        usec_t idle_usec, tunnel_idle_usec; /* 0 = BROKER_IDLE_USEC, TUNNEL_IDLE_USEC */
};

/* The sockets are taken always. control is a listening or a connected socket; control_uid's and root's connections are accepted. */
int broker_new(int control, int session, uid_t control_uid, Broker **ret);
Broker *broker_free(Broker *b);
DEFINE_CLEANUP(Broker *, broker_free);

/* Until SIGTERM, SIGINT, or b->idle_usec without a supervisor, a listener and connections. */
int broker_run(Broker *b);

/* Once; takes setup on success. -EALREADY the second time. */
int broker_configure(Broker *b, Setup *setup);
/* Once, after broker_configure(); takes the checked listener on success. */
int broker_listen(Broker *b, int listener, uint32_t address, uint16_t port);
/* Credential, stand-ins and listener are dead when it returns; connections but tunnels are closed. Again is fine. */
void broker_close(Broker *b);

/* To be called when something went that could have been the last thing to wait for. */
void broker_check_idle(Broker *b);

/* Before a buffer is made: false when the session holds too much. Inline, as tests link the tunnel without the rest. */
static inline bool broker_hold(Broker *b, size_t size) {
        if (size > HELD_MAX - MIN(b->held, (size_t) HELD_MAX))
                return false;
        b->held += size;
        b->held_most = MAX(b->held_most, b->held);
        return true;
}
static inline void broker_release(Broker *b, size_t size) {
        b->held -= MIN(b->held, size);
}
