/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* bailey run --explain: a run that is watched, and when it fails, what its policy refused and the line that would grant it. Returns the
 * exit code of the run. */

#include "bailey/options.h"
#include "bailey/policy.h"

int explain_run(const Options *o, const Policy *policy, int broker);
