/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One client connection from a session: reads a request head, authenticates, decides (CONNECT → tunnel.c; absolute-form and
 * provider routes → exchange.c), answers refusals itself. While an exchange or a tunnel is running, that owns the socket's events. */

#include <systemd/sd-event.h>

#include "broker/http1.h"
#include "broker/setup.h"

typedef struct Broker Broker;
typedef struct Connection Connection;
typedef struct Exchange Exchange;

struct Connection {
        Broker *broker;
        int fd;                     /* non-blocking, CLOEXEC */
        sd_event_source *io;        /* the connection's own; NULL while an exchange or tunnel is in charge */
        sd_event_source *timer;
        char *in;                   /* CLIENT_BUFFER_SIZE bytes while a request is read; bytes not yet consumed */
        size_t in_size;
        char *out;                  /* answer of our own not yet written */
        size_t out_size, out_done;
        bool keep_alive;            /* after the answer that is being written */
        Exchange *exchange;         /* running, or NULL */
        Connection *next, *previous;
};

/* Answers with our own words and goes on with the next request, or closes. `reason` is the reason phrase; `body` (NULL = reason) is sent as
 * text/plain with a newline; extra is NULL or whole header lines with CRLF. An unread request body closes the connection after. */
int connection_answer(Connection *c, unsigned status, const char *reason, const char *body, const char *extra, bool keep_alive);

/* An exchange calls this last, having freed itself (c->exchange is NULL): the connection takes its socket back, looks at the bytes left in
 * c->in, and reads the next request; or closes when !keep_alive. */
void connection_exchange_done(Connection *c, bool keep_alive);

Connection *connection_free(Connection *c);
