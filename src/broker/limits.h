/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Every cap on what a session, or a supervisor, can make a broker hold, and every time limit, with its reason. */

#include "basic/clock.h"

#define CONNECTIONS_MAX 16384U        /* 10 000 idle tunnels are a target; the rest is room for their successors */
#define HEAD_TIMEOUT_USEC (30 * USEC_PER_SEC)  /* a request head arrives in one piece from any honest client */
#define IDLE_TIMEOUT_USEC (120 * USEC_PER_SEC) /* a kept connection without a request */
#define EXCHANGE_STALL_USEC (600 * USEC_PER_SEC) /* a provider may think for minutes before a first token */
#define TUNNEL_IDLE_USEC (UINT64_C(7200) * USEC_PER_SEC) /* RFC 5382 asks a NAT for no less than 2 h 4 min with keepalives */
#define BROKER_IDLE_USEC (30 * USEC_PER_SEC) /* without a supervisor, a listener and connections there is nothing to wait for */
#define CLIENT_BUFFER_SIZE (64U * 1024U)   /* one head; also the unit of a relay */
#define RESPONSE_MAX (UINT64_C(64) << 20)  /* the promise: an answer over 64 MiB is refused or cut */
#define LOOKUPS_MAX 64U               /* pending name lookups; more wait for nothing but a 502 */
#define LOOKUP_THREADS 4U
#define LOOKUP_TIMEOUT_USEC (5 * USEC_PER_SEC) /* the promise: 504 after 5 s */
#define DIAL_TIMEOUT_USEC (10 * USEC_PER_SEC)  /* the promise: 502 after 10 s over all addresses */
#define ADDRESSES_MAX 32U             /* of one name */
#define GRANTS_MAX 1024U
#define PATTERNS_MAX 4096U            /* of egress.allow; a 64 KiB message holds fewer */
#define PROVIDERS_MAX 12U             /* each may bring a CA file beside keys and spool, and a message holds 16 fds */
#define SPOOL_QUEUE_MAX 8192U         /* receipts waiting for a disk that does not answer; more are dropped and counted in the log */
#define IDLE_RECEIPTS_BURST 1000U     /* of calls of which a provider saw nothing: so many, more than a session in earnest makes, are each kept, */
#define IDLE_RECEIPT_USEC USEC_PER_SEC /* then one in so much time: at 400 bytes 35 MB of a spool a day, where a loop would fill the disk */
#define HELD_MAX (192U << 20)         /* buffers of requests, answers and tunnels together: some 3000 heads or 300 calls; more get 503 */
#define EXCHANGE_HELD (576U * 1024U)  /* of one call, beside its CLIENT_BUFFER_SIZE: at most 496 KiB of messages both ways, and TLS */
#define MEMORY_MAX (256U << 20)       /* the promise: private memory of the process, whatever a session does. HELD_MAX; 16384 connections
                                       * of 1.5 KiB, or tunnels of 2 KiB; trust, kept upstreams, lookups and waiting receipts within 30 MiB */
#define ANSWER_TIMEOUT_USEC (30 * USEC_PER_SEC) /* a client that does not read our few bytes */
#define DRAIN_TIMEOUT_USEC (2 * USEC_PER_SEC)   /* after a last answer: until the client has seen it */
#define DRAIN_MAX (256U * 1024U)
#define HANDOVER_TIMEOUT_USEC (10 * USEC_PER_SEC) /* a session's first message comes at once */
#define ACCEPTS_USEC USEC_PER_SEC     /* on control and session socket, this many in so much time: one that cannot be accepted for want */
#define ACCEPTS_MAX 64U               /* of a descriptor stays readable, and must not keep the loop from what would free one */
#define REPLACED_REQUESTS_MAX 64U     /* of a supervisor that another one replaces: its socket holds a few, and it must not go on for ever */
#define SERVICE_SETTLE_USEC (500 * USEC_PER_MSEC) /* for a service manager to forget a closed session; a close is answered within a second */
#define HANDOVERS_MAX 8U              /* connections to the session socket at once: one is enough */
#define TOKEN_TRIES_MAX 3U            /* wrong tokens, then the session socket is closed for good */
#define UPSTREAM_KEPT_MAX 8U          /* idle connections kept to a provider; an agent seldom has more calls at once */
#define UPSTREAM_IDLE_USEC (30 * USEC_PER_SEC) /* for how long; the usual servers' own limits begin at 60 s */
#define LINGER_MAX (UINT64_C(16) << 20) /* bytes of an upload thrown away so that its early answer is not lost to a reset */
#define LINGER_USEC USEC_PER_SEC      /* and for how long */
