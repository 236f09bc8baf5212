/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/macro.h"
#include "errandd/shim-pace.h"

void shim_pace_credit(ShimPace *p, unsigned n) {
        p->paid -= MIN(p->paid, n * SHIM_PACE_USEC);
}

usec_t shim_pace_spend(ShimPace *p, size_t size_bytes, usec_t now) {
        usec_t most = now + SHIM_PACE_BURST * SHIM_PACE_USEC;

        p->paid = MAX(p->paid, now) + (1 + size_bytes / 1024) * SHIM_PACE_USEC;
        return p->paid > most ? p->paid - most : 0;
}
