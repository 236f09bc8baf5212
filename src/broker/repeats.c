/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/repeats.h"

/* FNV-1a. */
static uint64_t hash(uint64_t h, const char *s) {
        for (; *s; s++)
                h = (h ^ (uint8_t) *s) * UINT64_C(0x100000001b3);
        return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

uint64_t repeats_note(Repeats *r, const char *subject, const char *text, usec_t now) {
        uint64_t h = hash(hash(UINT64_C(0xcbf29ce484222325), subject), text);
        size_t oldest = 0;

        for (size_t i = 0; i < REPEATS_MAX; i++) {
                if (r->seen[i].said > 0 && r->seen[i].hash == h) {
                        uint64_t count = ++r->seen[i].count;
                        if (now - r->seen[i].said < USEC_PER_MINUTE)
                                return 0;
                        r->seen[i].count = 0;
                        r->seen[i].said = now;
                        return count;
                }
                if (r->seen[i].said < r->seen[oldest].said)
                        oldest = i;
        }
        r->seen[oldest].hash = h;
        r->seen[oldest].count = 0;
        r->seen[oldest].said = now;
        return 1;
}
