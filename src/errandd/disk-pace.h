/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* When a session's disk use is looked at next: the faster it writes, the sooner. */

#include "basic/clock.h"

#define DISK_SHORTEST_USEC (USEC_PER_SEC / 2) /* between two looks, but for a longest time that is shorter */
#define DISK_SHARE 4U /* of the time at most one part in so many goes into looking */

typedef struct DiskPace {
        uint64_t used; /* at the last look */
        usec_t at;     /* of it, monotonic; 0: there was none */
        usec_t interval;
} DiskPace;

/* `took` is how long the look took, `longest` what may be between two. When it goes on writing as it did, the next look comes half way to the budget; when it
 * writes nothing, after twice the time. */
usec_t disk_pace_next(DiskPace *p, uint64_t used, uint64_t budget, usec_t now, usec_t took, usec_t longest);
