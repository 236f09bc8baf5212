/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The inside of an exchange, shared by exchange.c (its life), relay-request.c and relay-answer.c (its two directions) alone. */

#include "broker/answer-scrub.h"
#include "broker/broker.h"
#include "broker/dial.h"
#include "broker/exchange.h"
#include "broker/limits.h"
#include "broker/trust.h"
#include "broker/upstream.h"
#include "broker/usage.h"

typedef enum ExchangePhase {
        EXCHANGE_DIALLING,   /* first, or again after a kept connection died; → HANDSHAKE, OWN_ANSWER */
        EXCHANGE_HANDSHAKE,  /* → RELAYING, OWN_ANSWER */
        EXCHANGE_RELAYING,   /* first with a kept connection; both directions move; → OWN_ANSWER, LINGER, end */
        EXCHANGE_OWN_ANSWER, /* words of ours are being written, there is no upstream any more; → LINGER, end */
        EXCHANGE_LINGER,     /* answered, but the client may still be sending: it must not lose the answer to a reset; → end */
        _EXCHANGE_PHASE_MAX,
} ExchangePhase;

/* Bytes between two cursors of one allocation. */
typedef struct RelayBuffer {
        char *data;
        size_t start, end, room;
} RelayBuffer;

static inline size_t relay_buffer_size(const RelayBuffer *b) {
        return b->end - b->start;
}

typedef struct RequestRelay {
        RelayBuffer head; /* the head, and the body when all of it was there at once. Holds the key: wiped */
        size_t head_body; /* how many bytes of it are body */
        RelayBuffer out;  /* re-framed body not yet written */
        Http1Framing framing;
        uint64_t left;
        Http1Chunked chunked;
        bool taken;          /* the whole body was taken from the client */
        bool broken;         /* the upstream takes no more */
        bool sent;           /* an upstream has got something of it */
        bool is_head, idempotent;
        bool odd_body;       /* one that a server may take for the next request: the connection ends with this call */
        bool wants_continue; /* the client waits for 100 Continue */
        uint64_t bytes;      /* body bytes sent upstream */
} RequestRelay;

typedef struct AnswerRelay {
        RelayBuffer in;  /* from upstream, not yet looked at */
        RelayBuffer out; /* for the client */
        size_t scanned;
        unsigned n_interim;
        bool begun;      /* the head's first byte may have gone to the client */
        bool done;       /* all that the client will get is in out */
        bool whole;      /* and it is the whole answer */
        bool more;       /* the others' turn came with bytes at hand */
        int end;         /* 0 while the upstream talks, 1 when it said that it is done, or a negative errno */
        Http1Framing framing;
        uint64_t left;
        Http1Chunked chunked;
        AnswerScrub *scrub;
        Usage *usage;    /* NULL: nobody wants its tokens */
        bool chunk_out;  /* the client gets it chunked */
        bool close_out;  /* the client gets it until the connection closes */
        bool keep_upstream;
        usec_t keep_usec; /* how long it says that it keeps one; USEC_INFINITY = it did not say */
        uint64_t raw;    /* body bytes that came */
        uint64_t bytes;  /* body bytes given to the client */
        unsigned status; /* 0 = no head yet */
} AnswerRelay;

struct Exchange {
        Connection *c;
        Broker *broker;
        const Provider *provider; /* NULL: a plain forward */
        Upstream *upstream;       /* the provider's; NULL for a forward */
        Host host;
        uint16_t port;
        char *path;               /* as sent, for receipt and log */
        const char *method;       /* a standard name or "OTHER" */
        unsigned minor;           /* of the client's HTTP/1 */
        bool keep_alive;          /* the client wants it */

        ExchangePhase phase;
        TrustWait *trust;         /* before the first dial to a provider over TLS */
        Dial *dial;
        Stream *stream;
        bool reused;              /* the stream is a kept one, and may turn out to be dead */
        uint32_t handshake_events;
        bool client_done;         /* its FIN was seen */
        bool client_left;         /* and it came in the middle of an answer: no half-close */
        usec_t begun_at;
        usec_t armed;             /* when the timer, the connection's, fires; USEC_INFINITY = not for this */
        usec_t active;            /* when bytes last moved */
        usec_t limit;             /* of a handshake, or of lingering; 0 = none */
        size_t lingered;          /* bytes thrown away */

        RequestRelay request;
        AnswerRelay answer;

        uint64_t spent[_BUDGET_KIND_MAX]; /* of this call, as its budgets have it */
        usec_t started;
        unsigned status;          /* what the session got; 0 = nothing */
        ReceiptOutcome outcome;
};

int relay_buffer_new(RelayBuffer *b, size_t room);
/* Wipes what it held. */
void relay_buffer_done(RelayBuffer *b);

/* Before there is anything to say to the client: answers with words of ours instead. The answer's own state ends; logs once. */
void exchange_fail(Exchange *e, ReceiptOutcome outcome, unsigned status, const char *reason, const char *body);

/* relay-request.c. Both directions' moves return > 0 when bytes moved, 0 when nothing can, -ECONNABORTED when the client is gone,
 * -ESTALE when a kept connection died before it was of use, another negative errno when out of memory or the like. */
int relay_request_prepare(Exchange *e, const Http1Head *head, size_t head_size, const ExchangeTarget *target);
/* Consumes the head (and what prepare took of the body) from c->in. */
void relay_request_commit(Exchange *e, size_t head_size);
/* Writes what a kept connection takes at once. Whatever comes of it is seen by the next move. */
void relay_request_begin(Exchange *e);
int relay_request_move(Exchange *e);
/* Throws away what has already come of the body. True when that was all of it. */
bool relay_request_discard(Exchange *e);
bool relay_request_pending(const Exchange *e); /* has bytes for the upstream */
bool relay_request_hungry(const Exchange *e);  /* wants bytes from the client */
bool relay_request_replayable(const Exchange *e);
void relay_request_rewind(Exchange *e);

/* relay-answer.c and, for heads, answer-head.c */
int answer_head_read(Exchange *e);
int relay_answer_prepare(Exchange *e);
int relay_answer_move(Exchange *e);
/* Writes what is in out: > 0 when it is empty now, 0 when the client takes no more, -ECONNABORTED. */
int relay_answer_flush(Exchange *e);
bool relay_answer_hungry(const Exchange *e); /* wants bytes from upstream */
