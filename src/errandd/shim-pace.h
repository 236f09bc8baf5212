/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How fast one shim may have followers told what none of them can do without. Beyond it what it says waits in its own socket, so that nothing is lost; text, of
 * which followers are left out when they do not read, is not counted. A follower that reads is so never given more of one session than it is to have unread
 * (BUS_UNREAD_SIGNALS_MAX), and one that does not is given it slowly. */

#include "basic/clock.h"

#define SHIM_PACE_USEC (USEC_PER_SEC / 32) /* for each signal, and each KiB of it: more than a person or a program that answers questions leads to */
#define SHIM_PACE_BURST 64U                /* of them at once: the ends of all prompts (PROMPTS_MAX), and as many again */

typedef struct ShimPace {
        usec_t paid; /* until then, monotonic; 0: nothing was told */
} ShimPace;

/* Somebody asked it for something that so many signals tell of: they are free. Not saved up. */
void shim_pace_credit(ShimPace *p, unsigned n);
/* For how long nothing more is to be taken from it. */
usec_t shim_pace_spend(ShimPace *p, size_t size_bytes, usec_t now);
