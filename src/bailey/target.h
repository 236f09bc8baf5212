/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the program to run as env(1) would: a name with a slash is a path, another is looked for in PATH. */

#include "basic/macro.h"

/* *ret is absolute and collapsed, as named, links not followed. -ENOENT (exit code 127), -EACCES when what there is cannot be
 * executed (126); logs why. Entries of PATH that are not absolute are skipped: nothing is taken from the working directory by
 * accident. */
int target_find(const char *name, char **ret);
