/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A few numbers in their order, in an array of whoever has it. */

#include "basic/macro.h"

/* Takes the first of that number out. False: there is none. */
static inline bool number_list_take(uint64_t *list, size_t *n, uint64_t number) {
        for (size_t i = 0; i < *n; i++)
                if (list[i] == number) {
                        memmove(list + i, list + i + 1, (--*n - i) * sizeof(*list));
                        return true;
                }
        return false;
}

static inline bool number_list_has(const uint64_t *list, size_t n, uint64_t number) {
        for (size_t i = 0; i < n; i++)
                if (list[i] == number)
                        return true;
        return false;
}
