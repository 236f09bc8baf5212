/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs: options → account → policy → plan → enter_run() → closing lines. Each returns bailey's exit code. */

#include "bailey/enter.h"
#include "bailey/options.h"
#include "bailey/policy.h"
#include "bailey/terminal.h"

#define EXIT_NOT_RUN 125       /* could not be set up, misused, or refused: nothing ran */
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

int run_verb(const Options *o);
int show_verb(const Options *o);

/* The steps of them that other verbs take, too. The first prints what was found, and both return an exit code. argv[0] is the
 * target. terminal NULL: the command has the caller's standard streams. */
int run_resolve(const Options *o, char *const *argv, const Account *account, Policy **ret);
int run_policy(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal);
/* The same, watched; without closing lines when it is not confined. *ret is what became of it. */
int run_policy_observed(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal, Observer *observer,
                        RunResult *ret);
