/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One provider call as it is kept: numbers, names and a path that has been made harmless. Never a header, a body, a query's text,
 * a credential or a stand-in. */

#include "basic/clock.h"
#include "broker/http1.h"
#include "broker/setup.h"
#include "shared/spool.h"

#define RECEIPT_PATH_MAX 256U /* bytes, after escaping: the promise */

/* How far a call got: what costs a session nothing is rationed. */
typedef enum ReceiptReach {
        RECEIPT_SENT,        /* something of it went to the provider */
        RECEIPT_UNSENT,      /* nothing did, though it was let through, and counted by its budgets */
        RECEIPT_TURNED_AWAY, /* not let through */
} ReceiptReach;

typedef struct Receipt {
        const Provider *provider;
        const char *method;  /* of receipt_method() */
        Slice path;          /* as sent, after the route, without its query; made harmless by receipt_format() */
        size_t query_size;   /* only the length of a query is kept */
        unsigned status;     /* what the session got; 0 = nothing */
        usec_t started;      /* monotonic */
        uint64_t bytes_up;   /* body bytes sent upstream */
        uint64_t bytes_down; /* body bytes given to the session */
        uint64_t tokens;     /* that the answer named; 0 = none, or nobody counts them */
        ReceiptReach reach;
        ReceiptOutcome outcome;
} Receipt;

/* The standard name (RFC 9110 and PATCH), or "OTHER": a method is a token of the client's choice and could carry a secret. */
const char *receipt_method(Slice method);

/* Splits a target into path and query; ret_query_size is 0 without a query. */
Slice receipt_split_query(Slice target, size_t *ret_query_size);

/* Decoded once, cut at an encoded '?', without the provider's key and stand-in or anything that reads like a credential of a session,
 * controls and invalid UTF-8 as \xNN, at most RECEIPT_PATH_MAX bytes, cut between characters. *ret is the caller's to free. */
int receipt_path(const Provider *provider, Slice path, char **ret);

/* As sent, but for "[redacted]" in place of a secret. -EPERM when more than that would have to go: it encodes a query, or a secret that only
 * decoding finds. *ret is the caller's to free. */
int receipt_scrub_raw_path(const Provider *provider, Slice path, char **ret, size_t *ret_size);

/* The record's payload, a JSON object of ended (µs since the epoch), session, provider, credential, host, method, path, query (length),
 * status, duration (µs), up, down, outcome, and tokens and unrecorded when > 0. *ret is the caller's to free. */
int receipt_format(const Receipt *receipt, const char *session, usec_t ended, usec_t duration, uint64_t unrecorded, char **ret, size_t *ret_size);
