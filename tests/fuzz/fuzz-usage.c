/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/usage.h"
#include "fuzz.h"

/* However an answer is cut into pieces, it counts the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data;

        for (unsigned events = 0; events < 2; events++) {
                Usage whole, cut;
                usage_init(&whole, events);
                usage_init(&cut, events);
                usage_feed(&whole, text, size);
                size_t piece = size > 0 ? (size_t) data[0] % 7 + 1 : 1;
                for (size_t at = 0; at < size; at += piece)
                        usage_feed(&cut, text + at, MIN(piece, size - at));
                HOLDS(usage_tokens(&whole) == usage_tokens(&cut));
                HOLDS(usage_tokens(&whole) <= UINT64_C(7000000000000));
                HOLDS(whole.usage_depth <= whole.depth && whole.usage_depth <= 3);
        }
        return 0;
}
