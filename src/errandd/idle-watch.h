/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ends a session in which nothing happens (timeouts.idleMs): nobody is attached to its terminal, it says nothing, its processes compute next to nothing,
 * and no prompt waits for its turn or the end of it. It is warned about before. Where that cannot be found out, it goes on, and so does one whose output goes straight to files or pipes of whoever started it, who waits for it. */

#include "errandd/manager.h"

typedef struct Run Run;
typedef struct IdleWatch IdleWatch;

/* *ret is NULL where there is no limit. */
int idle_watch_new(Run *run, IdleWatch **ret);
IdleWatch *idle_watch_free(IdleWatch *w);
