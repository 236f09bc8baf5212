/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How much of a disk lies below a directory, whatever an enemy made of it. */

#include "basic/macro.h"

#define DISK_ENTRIES_MAX (4U * 1024U * 1024U) /* some ten seconds of work, and more than any checkout has */
#define DISK_DEPTH_MAX 512U                   /* a path of PATH_MAX is seldom deeper, and each level holds a descriptor */

typedef struct DiskUsage {
        uint64_t bytes;   /* blocks that are in use: holes are none, and a file with several links counts for each by its share */
        uint64_t entries;
        bool whole;       /* else there is more: too many entries, too deep, or directories of this account that it cannot read */
} DiskUsage;

/* Links are not followed, and other mounts are not entered. The directory is borrowed, and the process that asks should be one for this alone:
 * see disk_usage_prepare(). 0 or a negative errno, when the directory itself cannot be read. */
int disk_usage_measure(int directory, DiskUsage *ret);

/* For a child of its own, which does nothing else: yields to everything else, has as many descriptors as it may, and reads what its own account has
 * closed to itself, by way of a user namespace, where there are any. */
void disk_usage_prepare(void);
