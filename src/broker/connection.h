/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One client connection from a session. Its first byte says in which protocol it asks: request.c decides on HTTP (CONNECT → egress.c;
 * absolute-form and provider routes → exchange.c), socks.c on SOCKS5 (→ egress.c). It answers refusals itself. While an exchange or a
 * tunnel is running, it is told the socket's events. */

#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "basic/clock.h"
#include "basic/log.h"
#include "broker/client-hello.h"
#include "broker/http1.h"
#include "broker/setup.h"

typedef struct Broker Broker;
typedef struct Connection Connection;
typedef struct Dial Dial;
typedef struct Exchange Exchange;
typedef struct Tunnel Tunnel;

typedef enum ConnectionProtocol {
        CONNECTION_UNDECIDED, /* nothing was read yet */
        CONNECTION_HTTP,
        CONNECTION_SOCKS5,
} ConnectionProtocol;

typedef enum SocksStep {
        SOCKS_GREETING,
        SOCKS_CREDENTIAL,
        SOCKS_REQUEST,
} SocksStep;

typedef enum ConnectionState {
        CONNECTION_READING,  /* a request head, or a message of SOCKS, or waiting for one */
        CONNECTION_DIALING,  /* for a CONNECT */
        CONNECTION_BUSY,     /* an exchange or a tunnel is in charge */
        CONNECTION_WRITING,  /* an answer of our own */
        CONNECTION_DRAINING, /* after a last answer: drops what the client still sends, so that no reset overtakes the answer */
        CONNECTION_CLOSING,  /* is freed from the loop as soon as it comes by */
} ConnectionState;

#define CONNECTION_EVENTS ((uint32_t) (EPOLLIN | EPOLLRDHUP)) /* of one that waits for a request; an end that came with it is told apart */

struct Connection {
        Broker *broker;
        int fd;                 /* non-blocking, CLOEXEC */
        sd_event_source *io;    /* the connection's own, which tells an exchange while there is one; NULL while a tunnel is in charge */
        sd_event_source *timer; /* as io */
        uint32_t watched;       /* events that io is set to, when all that it told was seen to: then it need not be set anew. 0 = it must be */
        char *in;               /* CLIENT_BUFFER_SIZE bytes while a request is read; bytes not yet consumed */
        size_t in_size;
        char *out; /* answer of our own not yet written */
        size_t out_size, out_done;
        bool keep_alive;    /* after the answer that is being written */
        Exchange *exchange; /* running, or NULL */
        Connection *next, *previous;

        ConnectionProtocol protocol;
        SocksStep step; /* of the message that is read next */

        /* connection.c's own: */
        ConnectionState state;
        size_t scanned;   /* for http1_find_head_end() */
        size_t head_size; /* bytes at the start of c->in that the request being decided takes */
        bool body_unread; /* that request has a body that nobody has read */
        uint64_t body_size; /* of it; UINT64_MAX when nobody knows */
        bool request_keep_alive;
        bool request_was_head; /* the answer has no body */
        size_t drained;
        Dial *dial;
        Tunnel *tunnel;
        ClientHello *hello; /* what the coming tunnel's first message is compared with; the tunnel takes it. NULL: it is not looked at */
        char *subject; /* "CONNECT api.example.com:443", for the log; NULL between requests */
        usec_t began;  /* of the tunnel */
};

/* Answers with our own words and goes on with the next request, or closes. `reason` is the reason phrase; `body` (NULL = reason) is
 * sent as text/plain with a newline; extra is NULL or whole header lines with CRLF. An unread request body closes the connection
 * after. May be called while a request is decided (route_authorize(), its head then still in c->in), or by an exchange that has
 * freed itself (c->exchange is NULL), in place of connection_exchange_done(). A negative errno: there was no memory for it, and c
 * is gone. */
int connection_answer(Connection *c, unsigned status, const char *reason, const char *body, const char *extra, bool keep_alive);

/* Sends size bytes, and then reads the client's next message, or closes. As connection_answer() otherwise. */
int connection_send(Connection *c, const void *data, size_t size, bool keep_alive);

/* An exchange calls this last, having freed itself (c->exchange is NULL): the connection takes its socket back, looks at the bytes
 * left in c->in, and reads the next request; or closes when !keep_alive. */
void connection_exchange_done(Connection *c, bool keep_alive);

/* A tunnel calls this last; error is 0 for a clean end of both directions. Frees c. */
void connection_tunnel_done(Connection *c, int error);

/* fd is taken always: closed when it cannot be served. */
void connection_new(Broker *b, int fd);
/* Ends an exchange, a tunnel or a dial with it. */
Connection *connection_free(Connection *c);

/* Waits for more of what is in c->in. */
void connection_read_more(Connection *c);
/* What a dial for a CONNECT gave; fd is taken always. */
void connection_start_tunnel(Connection *c, int fd);
/* A dial for a CONNECT begins: nothing is read until it ended. */
void connection_wait_for_dial(Connection *c);

/* What the log calls the request from now on. */
void connection_set_subject(Connection *c, const char *format, ...) _printf_(2, 3);
/* "session s1: SUBJECT: …" */
void connection_log(Connection *c, LogLevel level, const char *format, ...) _printf_(3, 4);
/* Counts a refusal, and says it as far as refusal-log.h lets it. */
void connection_log_refusal(Connection *c, const char *format, ...) _printf_(2, 3);
