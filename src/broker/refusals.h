/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When the supervisor is told of a refused host: once a minute for each host, and of no more than three hosts a minute, so that an
 * agent that retries in a loop is one message a minute. */

#include "basic/clock.h"
#include "broker/hosts.h"

#define REFUSALS_HOSTS_MAX 64U /* remembered; the longest untold one makes room */
#define REFUSALS_A_MINUTE 3U

typedef struct RefusedHost {
        char name[HOST_NAME_MAX_BYTES + 1];
        uint64_t count;    /* since it was last told */
        usec_t told, seen; /* monotonic; told 0 = never */
} RefusedHost;

typedef struct Refusals {
        RefusedHost hosts[REFUSALS_HOSTS_MAX];
        size_t n;
        usec_t last[REFUSALS_A_MINUTE]; /* when the last ones were told, a ring; 0 = never */
        unsigned next;                  /* the oldest of them */
        uint64_t untold_count;
        uint64_t total;                 /* of all refusals there ever were */
} Refusals;

/* Counts a refusal. True: tell it now, with *ret_count refusals of that host since it was last told (this one included). */
bool refusals_note(Refusals *r, const char *host, usec_t now, uint64_t *ret_count);

/* What went untold since the last call: the number of refusals, and of hosts that wait to be told. True when there was any. */
bool refusals_summary(Refusals *r, uint64_t *ret_count, uint64_t *ret_hosts);
