/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What reading and resolving a policy found, all of it and not the first: an error means that nothing runs, a warning is told
 * and the run goes on. Library code collects; the program prints once. */

#include "basic/macro.h"

typedef struct Findings {
        char **errors, **warnings;
        bool oom; /* something could not even be kept: counts as an error */
} Findings;

void findings_done(Findings *f);
void finding_error(Findings *f, const char *format, ...) _printf_(2, 3);
void finding_warning(Findings *f, const char *format, ...) _printf_(2, 3);
bool findings_failed(const Findings *f);
unsigned findings_count(const Findings *f); /* errors */

/* Logs all of it. */
void findings_print(const Findings *f);
