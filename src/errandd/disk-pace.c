/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errandd/disk-pace.h"

/* Until half of what is left is used, at that rate. */
static usec_t half_way(uint64_t written, usec_t time, uint64_t left) {
        double usec = (double) left / 2 * (double) time / (double) written;

        return usec < (double) (UINT64_MAX / 2) ? (usec_t) usec : UINT64_MAX / 2;
}

usec_t disk_pace_next(DiskPace *p, uint64_t used, uint64_t budget, usec_t now, usec_t took, usec_t longest) {
        usec_t shortest = MAX(DISK_SHORTEST_USEC, took * DISK_SHARE), next = DISK_SHORTEST_USEC;

        if (p->at > 0 && now > p->at && used > p->used)
                next = half_way(used - p->used, now - p->at, budget > used ? budget - used : 0);
        else if (p->at > 0)
                next = p->interval * 2;
        p->used = used;
        p->at = MAX(now, (usec_t) 1);
        p->interval = MIN(MAX(next, shortest), longest);
        return p->interval;
}
