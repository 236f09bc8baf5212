/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* Removes all that lies in the directory, whatever an enemy made of it: any depth, closed directories, links, which are never followed, and
 * other file systems, which are never entered. Needs two descriptors and no memory that grows. The directory stays. 0 or a negative errno. */
int tree_empty(int directory);
