/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <limits.h>

#include "basic/macro.h"

#define INTERPRETERS_MAX 5U /* scripts of scripts that the kernel follows, and a loader at the end */

/* What the kernel opens to execute a file: what its #! line or its ELF header names. 1 with that in ret, 0 when it needs nothing, or a
 * negative errno. The file is looked for below the directory `root`, and when it is not there, on the host. */
int interpreter_of(int root, const char *path, char ret[PATH_MAX]);
