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
        uint16_t port;     /* of the last refusal */
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
bool refusals_note(Refusals *r, const char *host, uint16_t port, usec_t now, uint64_t *ret_count);

/* The same while nobody is there to be told: it waits for refusals_next(), or is summed up. */
void refusals_keep(Refusals *r, const char *host, uint16_t port, usec_t now);

/* The host that waits to be told and was refused last, as far as it may be told now: with it, it is. It is valid until the next call; *ret_count
 * is as of refusals_note(). NULL: none. What is told so is not summed up any more. */
const RefusedHost *refusals_next(Refusals *r, usec_t now, uint64_t *ret_count);

/* What was to be told, and could not be, waits again. */
void refusals_take_back(Refusals *r, const char *host, uint64_t count);

/* What went untold since the last call: the number of refusals, and of hosts that wait to be told. True when there was any. */
bool refusals_summary(Refusals *r, uint64_t *ret_count, uint64_t *ret_hosts);
