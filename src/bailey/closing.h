/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a run says when it has ended, on stderr: what was enforced and what was not. */

#include "bailey/enter.h"

/* `quiet` hides what was enforced, never a gap. appeared: what git outside would execute (git-watch.h), NULL: nothing. */
void closing_print(const RunResult *result, const Network *network, bool quiet, char *const *appeared);
/* The same and the status as one line of JSON. */
void closing_print_json(const RunResult *result, const Network *network, char *const *appeared);
