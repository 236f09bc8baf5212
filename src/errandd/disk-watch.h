/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks how much of the disk a session takes, by its launcher, while it runs: what lies in its state, and what its project has grown by since it was
 * started. One that passes its budget is stopped; nothing is capped. What it has in files without a name, and in places that policyExtra grants, is not seen. */

#include "errandd/manager.h"

typedef struct Run Run;
typedef struct DiskWatch DiskWatch;

/* Before anything of it runs: what the project's file system has in use is noted in the record, by which a first look that comes late is set right. In the
 * record is also how large the project was, for one that is found again. */
int disk_watch_new(Run *run, DiskWatch **ret);
/* Looks, at once: when the session has been let go, so that its start does not wait while the launcher forks for this. NULL: does nothing. */
void disk_watch_begin(DiskWatch *w);
DiskWatch *disk_watch_free(DiskWatch *w);
