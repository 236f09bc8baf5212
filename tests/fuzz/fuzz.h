/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A fuzzer is one file with LLVMFuzzerTestOneInput, which aborts when something that must hold does not. Linked with replay.c it is an
 * ordinary test over its corpus; built by clang with -Dfuzzing=true it searches for more. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C"
#endif
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(condition)                                                                    \
        do {                                                                                \
                if (!(condition)) {                                                         \
                        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
                        abort();                                                            \
                }                                                                           \
        } while (0)
