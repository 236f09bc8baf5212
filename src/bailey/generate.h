/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From a trace to the policy under which the program may do the same again. */

#include "bailey/access.h"

typedef struct GenerateOptions {
        const char *target; /* absolute: for whom it is */
        bool include_high_risk;
} GenerateOptions;

/* Prints TOML. 1, or 0 when there is nothing to grant and nothing was printed; -ENOMEM, -EIO. The trace's accesses are sorted. */
int generate_policy(const Trace *t, const GenerateOptions *options, FILE *f);
