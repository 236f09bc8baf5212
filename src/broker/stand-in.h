/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether a call on a provider route carries the session's stand-in where that provider's key travels. */

#include "broker/http1.h"
#include "broker/setup.h"

typedef enum StandIn {
        STAND_IN_RIGHT,
        STAND_IN_NONE,    /* no header came that could carry a key */
        STAND_IN_OTHER,   /* only another one came */
        STAND_IN_SEVERAL, /* the placed header came more than once */
        STAND_IN_SCHEME,  /* Authorization came with another scheme */
        STAND_IN_WRONG,   /* another value */
        _STAND_IN_MAX,
} StandIn;

/* Looks in the placed header only, or in both of PLACEMENT_EITHER, where one that is right is enough; compares in constant time. Unless it is
 * right, *ret_came is the name of the header that the finding is about, as the provider's setup or this file writes it. */
StandIn stand_in_check(const Provider *p, const Http1Head *head, const char **ret_came);

/* The 401's body: which header is expected, and what came instead; and its challenge, a whole header line. To free; NULL when out of memory.
 * Nothing that the session sent is in them. */
char *stand_in_words(const Provider *p, StandIn what, const char *came);
char *stand_in_challenge(const Provider *p);
