/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <time.h>

#include "basic/clock.h"

static usec_t now(clockid_t clock) {
        struct timespec ts;
        (void) clock_gettime(clock, &ts); /* cannot fail for these two clocks */
        return (usec_t) ts.tv_sec * USEC_PER_SEC + (usec_t) ts.tv_nsec / 1000;
}

usec_t now_monotonic(void) {
        return now(CLOCK_MONOTONIC);
}

usec_t now_realtime(void) {
        return now(CLOCK_REALTIME);
}
