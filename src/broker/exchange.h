/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One HTTP request relayed to an upstream and its answer relayed back: a plain http:// request in absolute form, or a call on a provider
 * route (TLS, the key put in, the answer scrubbed, a receipt). Messages are re-framed, never copied raw. */

#include "broker/connection.h"

typedef struct ExchangeTarget {
        const Provider *provider; /* NULL: a plain forward */
        const Host *host;         /* forward: the target's; provider: the provider's */
        uint16_t port;
        Slice path;               /* origin form, query included: what goes upstream (after base_path for a provider); may be "" */
} ExchangeTarget;

/* Takes over c's socket: c->exchange is set, and until connection_exchange_done() it is told what c->io and c->timer tell. head points into c->in[0…head_size); the exchange consumes those and the
 * body's bytes from c->in before it reads more. By then the connection has authenticated and judged host and port; for a provider the
 * stand-in has been checked by route_authorize(). Nothing is called back from here: the first callback comes from the loop. Negative
 * errno: nothing was taken over and nothing answered; -ENOBUFS: the session holds too much already. */
int exchange_start(Connection *c, const Http1Head *head, size_t head_size, const ExchangeTarget *target);

/* The events of c's socket and its timer, while c->exchange is set: by then e may be gone. */
void exchange_on_client(Exchange *e, uint32_t events);
void exchange_on_timer(Exchange *e);

/* The broker was closed, or the client went: ends it without an answer and without connection_exchange_done() (a receipt is still
 * written, and c->exchange is NULL); → NULL. The caller closes the connection. */
Exchange *exchange_cancel(Exchange *e);

/* Closes the connections that are kept to providers, and forgets their trust and tickets. Every exchange must have ended before; call it when
 * the broker is closed, and before setup_free(). */
void exchange_forget_upstreams(Broker *b);
