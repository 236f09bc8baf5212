/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One shim that is started before there is a session for it: to execute it and to load its libraries takes longer than all else that a launcher
 * does for one. It is nobody's yet, so it neither counts nor keeps the launcher; whatever becomes of it, a session can be started without. */

#include "launch/launcher.h"

/* Starts one, if there is none, a while after the last of these calls, where the launcher keeps one: never on the way of a session. */
void shim_ahead_later(Launcher *l);

/* The one that waits, now the caller's as a child of this process is; *ret_fd is for shim_hand_over(). -ENOENT. */
int shim_ahead_take(Launcher *l, pid_t *ret_pid, int *ret_fd);

void shim_ahead_end(Launcher *l); /* and no other comes */
