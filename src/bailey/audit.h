/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/audit-notify.h"
#include "bailey/options.h"
#include "bailey/policy.h"
#include "bailey/terminal.h"

/* Runs argv under the policy, watched, and fills a->trace, sorted. Returns the exit code; a->trace.calls is 0 when nothing was run. */
int audit_run(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal, Audit *a);

/* bailey audit: runs a program and lists what its policy does not grant. Returns the program's exit code as bailey run does; 1 when
 * the trace could not be written. */
int audit_verb(const Options *o);

/* bailey profile generate: a trace becomes a policy on standard output. 0, or 1 after a line that says why not. */
int profile_generate_verb(const Options *o);
