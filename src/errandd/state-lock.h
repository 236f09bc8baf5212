/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* One errandd a state directory. Locks STATEDIR/.lock for as long as the returned fd is open, whoever dies how; -EBUSY: another one holds
 * it. A child that is forked without an exec keeps the lock with its copy of the fd. */
int state_lock(int state_dir);

/* The pid that the holder wrote, for a sentence; 0 when there is none to read. */
pid_t state_lock_holder(int state_dir);
