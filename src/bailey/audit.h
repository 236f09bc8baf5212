/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/options.h"

/* bailey audit: runs a program and lists what its policy does not grant. Returns the program's exit code as bailey run does; 1 when
 * the trace could not be written. */
int audit_verb(const Options *o);

/* bailey profile generate: a trace becomes a policy on standard output. 0, or 1 after a line that says why not. */
int profile_generate_verb(const Options *o);
