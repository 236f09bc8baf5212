/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A transient scope around a process that waits. It is made whole (the job is done, and the process is in it) or not at all. */

#include "launch/scope-plan.h"
#include "launch/user-manager.h"

typedef struct Scope Scope;

/* Called once: 0, or a negative errno with a sentence. Then the process may run, or has to be ended. */
typedef void (*ScopeMade)(int error, const char *text, void *userdata);

/* The plan is taken on success. The process is `pid`, which nobody reaps before the scope is made, so that its number stays its own; `pidfd`
 * (borrowed until `made`) is its descriptor. `made` comes within SCOPE_USEC. Negative with *ret_problem (to free; may be NULL). */
int scope_make(UserManager *manager, ScopePlan *plan, pid_t pid, int pidfd, ScopeMade made, void *userdata, Scope **ret, char **ret_problem);

/* Another one is told of one that is being made. */
void scope_hand_over(Scope *s, ScopeMade made, void *userdata);

/* Forgets it: one that is being made is not called back for, and is stopped; one that was made goes with its last process. */
Scope *scope_free(Scope *s);
DEFINE_CLEANUP(Scope *, scope_free);

const char *scope_unit(const Scope *s);
/* Of one that was made: whether a limit was asked for and the kernel does not hold it, as where the manager has no controller for it. */
bool scope_limit_missing(const Scope *s, ScopeLimit limit);
/* Ends all that is left in it. */
void scope_stop(Scope *s);
