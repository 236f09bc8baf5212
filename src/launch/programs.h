/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Programs are opened once, when the launcher starts, and executed by descriptor: what is put in their place later does not run, and the
 * directories they lie in may be closed to this account. */

#include "basic/macro.h"

/* Looks for `name` in $ERRAND_LIBEXEC alone when that is set; else beside this program, in ../`folder` of it as a build tree has it, and where
 * it is installed. An fd to execute, or a negative errno. */
int program_open(const char *name, const char *folder);

/* Whether fd is a regular file that this account may execute. */
int program_check(int fd);

/* In a child, only system calls: default signals, none blocked, a session of its own; standard[] become 0, 1, 2; of the others only keep[]
 * stay open; then executes. Exits with 125 when that fails, after a line on the new standard error. */
_noreturn_ void program_execute(int program, char *const *argv, const int standard[3], const int *keep, size_t n_keep);
