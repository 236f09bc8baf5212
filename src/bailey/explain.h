/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* --explain: a run that is watched, and when it fails, what its policy refused and the line that would grant it; of a shell, whose status
 * is its last command's, at its end. Returns the exit code of the run. */

#include "bailey/options.h"
#include "bailey/policy.h"
#include "bailey/terminal.h"

int explain_run(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal);
