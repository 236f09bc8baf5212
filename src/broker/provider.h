/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A provider route's pure judgements: the path after it, the stand-in, which fields go upstream. provider_authorize() of exchange.h uses them. */

#include "broker/http1.h"
#include "broker/setup.h"

/* Splits "/provider/ID/rest?query" into ID and "/rest?query" ("" when nothing follows). -ENOENT when it is no such path. */
int provider_split(Slice path, Slice *ret_id, Slice *ret_rest);

/* NULL, or why a path that follows the route (query included) could be read differently by the provider than here: a phrase. "" and "/"
 * are clean. */
const char *provider_path_problem(Slice rest);

typedef enum StandIn {
        STAND_IN_RIGHT,
        STAND_IN_NONE,     /* neither credential header came */
        STAND_IN_OTHER,    /* only the other header came */
        STAND_IN_SEVERAL,  /* the placed header came more than once */
        STAND_IN_SCHEME,   /* Authorization came with another scheme than Bearer */
        STAND_IN_WRONG,    /* another value */
        _STAND_IN_MAX,
} StandIn;

/* Looks in the placed header only; compares in constant time. */
StandIn provider_check_stand_in(const Provider *p, const Http1Head *head);

/* The 401's body: which header is expected, and what came instead. Static text. */
const char *provider_stand_in_words(Placement placement, StandIn what);

/* True for a field that must not reach a provider: any credential header, Accept-Encoding, and headers that ask for another method or path
 * ('_' counts as '-', as CGI and its kind see it). */
bool provider_drops_field(Slice name);
