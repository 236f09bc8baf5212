/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a run may leave in a repository for the next git outside to execute: hooks, settings that name a program, a .git that leads
 * elsewhere. Looked at before and after in each directory that the policy makes writable and on the way from it to the working
 * directory; what is deeper is not looked at. */

#include "bailey/policy.h"

typedef struct GitWatch GitWatch;

GitWatch *git_watch_free(GitWatch *w);
DEFINE_CLEANUP(GitWatch *, git_watch_free);

/* Before the run. 0 with *ret NULL when there is nowhere to look; -ENOMEM. */
int git_watch_begin(const Policy *p, GitWatch **ret);

/* After it: in *ret a list, to free, of what appeared or changed, a sentence each; NULL: nothing did. w may be NULL. */
int git_watch_end(const GitWatch *w, char ***ret);
