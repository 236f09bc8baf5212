/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Receipts of provider calls: queued by the loop, written and fdatasync'ed by one thread at most a second later. A write that fails is logged
 * once a minute and never fails a call. */

#include "basic/clock.h"
#include "broker/http1.h"
#include "broker/setup.h"
#include "shared/spool.h"

typedef struct Receipts Receipts;

typedef struct Receipt {
        const Provider *provider;
        const char *method;  /* a standard name, or "OTHER" */
        Slice path;          /* as sent, after the route; is decoded, scrubbed, cut at an encoded query, escaped and cut to 256 bytes here */
        size_t query_size;   /* only the length of a query is kept */
        unsigned status;     /* what the session got; 0 = nothing */
        usec_t started;      /* monotonic */
        uint64_t bytes_up;   /* body bytes sent upstream */
        uint64_t bytes_down; /* body bytes given to the session */
        ReceiptOutcome outcome;
        uint64_t unrecorded; /* DENIED: how many were refused without a record since the last */
} Receipt;

/* fd is the spool (owned from here on; -EBADF: receipts are counted and dropped). session is borrowed. */
int receipts_new(const char *session, int fd, Receipts **ret);
/* Writes what is queued, syncs, joins the thread. */
Receipts *receipts_free(Receipts *r);
DEFINE_CLEANUP(Receipts *, receipts_free);

/* Never blocks. The payload is one JSON object: ended (µs since the epoch), session, provider, credential, host, method, path, query (length),
 * status, duration (µs), up, down, outcome, and unrecorded when > 0. */
void receipts_add(Receipts *r, const Receipt *receipt);

/* A grant for once that is used now: written and synced before this returns (the caller dials after). Negative errno: it was not kept. */
int receipts_grant_used(Receipts *r, const char *grant_id, const char *host);
