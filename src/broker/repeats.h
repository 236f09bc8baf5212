/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the log has said lately, so that a client that tries again in a loop does not fill it. Pure. */

#include "basic/clock.h"

#define REPEATS_MAX 32U /* remembered at a time; what is pushed out is said anew */

typedef struct Repeats {
        struct {
                uint64_t hash;  /* of what was said: two that share one are merely counted together */
                uint64_t count; /* since it was said */
                usec_t said;    /* monotonic; 0 = free */
        } seen[REPEATS_MAX];
} Repeats;

/* How often this came since it was said, this time included, when it is to be said now: the first time, then once a minute. Else 0. */
uint64_t repeats_note(Repeats *r, const char *subject, const char *text, usec_t now);
