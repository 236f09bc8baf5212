/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Name lookups by this host's resolver, off the loop. getaddrinfo() cannot be interrupted, so a lookup that outlives its time is
 * abandoned: its thread is written off until it comes back, and another takes its place. Queries for a name that is being looked up
 * share that lookup. */

#include <systemd/sd-event.h>

#include "shared/addresses.h"

typedef struct Resolver Resolver;
typedef struct Query Query;

typedef enum ResolveResult {
        RESOLVE_DONE,    /* at least one address */
        RESOLVE_FAILED,  /* detail is the resolver's reason */
        RESOLVE_TIMEOUT, /* LOOKUP_TIMEOUT_USEC passed */
} ResolveResult;

/* Called once from the event loop; the query is gone when it returns. addresses are borrowed, without repetitions, in the
 * resolver's order. */
typedef void (*ResolveHandler)(void *userdata, ResolveResult result, const Address *addresses, size_t n, const char *detail);

int resolver_new(sd_event *event, Resolver **ret);
/* Queries end without a call; a thread that is inside a lookup is left to itself. */
Resolver *resolver_free(Resolver *r);
DEFINE_CLEANUP(Resolver *, resolver_free);

/* -EBUSY when LOOKUPS_MAX lookups are pending, -EINVAL for a name that an address parser would take (the caller judged it a name:
 * it must not become an address here). */
int resolver_start(Resolver *r, const char *name, ResolveHandler handler, void *userdata, Query **ret);
Query *query_cancel(Query *q);

/* Lookups that a query waits for. */
size_t resolver_pending(const Resolver *r);
