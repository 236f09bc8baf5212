/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "launch/launcher.h"
#include "launch/request.h"

/* Forks and executes a shim, its environment empty. *ret_channel, which does not block, is where it tells how far it is. */
int shim_start(const Launcher *l, const LaunchPlan *plan, pid_t *ret_pid, int *ret_channel);
