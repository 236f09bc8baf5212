/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Project directories that sessions of this account and a person work in together. */

#include "basic/macro.h"

/* Makes `name` in the directory `root`: this account's and its group's, setgid, and open to the account `owner` by access control lists,
 * which also what is made in it later inherits. It appears complete or not at all. 1: made. 0: it was there, a directory of this account,
 * and is left as it is. Negative with *ret_problem, a sentence (to free; may be NULL). */
int project_make(int root, const char *name, uid_t owner, char **ret_problem);

/* The same directory as this mount namespace has it: one that errandd opened in a namespace of its own cannot be mounted from here. *fd is replaced when its
 * path leads to it here, by no link; else it stays, and the sandbox refuses what it cannot mount. */
void project_settle(int *fd);
