/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "basic/size.h"

#define UNIT_MAX 4U
static const char units[] = "\0kmgt";

const char *size_exact(uint64_t bytes, char buffer[static SIZE_TEXT_MAX]) {
        unsigned unit = 0;

        for (; unit < UNIT_MAX && bytes > 0 && bytes % 1024 == 0; unit++)
                bytes /= 1024;
        (void) snprintf(buffer, SIZE_TEXT_MAX, "%" PRIu64 "%.1s", bytes, units + unit);
        return buffer;
}

const char *size_about(uint64_t bytes, char buffer[static SIZE_TEXT_MAX]) {
        uint64_t one = 1;
        unsigned unit = 0;

        for (; unit < UNIT_MAX && bytes / one >= 1024; unit++)
                one *= 1024;
        uint64_t whole = bytes / one, tenths = (bytes % one * 10 + one - 1) / one;
        if (tenths == 10) {
                whole++;
                tenths = 0;
        }
        if (tenths > 0)
                (void) snprintf(buffer, SIZE_TEXT_MAX, "%" PRIu64 ".%" PRIu64 "%.1s", whole, tenths, units + unit);
        else
                (void) snprintf(buffer, SIZE_TEXT_MAX, "%" PRIu64 "%.1s", whole, units + unit);
        return buffer;
}
