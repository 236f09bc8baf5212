/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errand-connect where every session's account reaches it: as it is installed; or, from a directory that the system's own do not hold (a
 * checkout in root's home, for one), a copy that is kept in the state directory. */

#include "errandd/paths.h"

/* *ret is its path, to free. p is open. */
int connect_place(const Paths *p, char **ret);
