/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "launch/launcher.h"
#include "launch/request.h"

/* Forks and executes a shim, its environment empty. *ret_channel, which does not block, is where it tells how far it is. */
int shim_start(const Launcher *l, const LaunchPlan *plan, pid_t *ret_pid, int *ret_channel);

/* One that waits for a plan, and ends with *ret_fd, which does not block. */
int shim_start_ahead(const Launcher *l, pid_t *ret_pid, int *ret_fd);

/* The plan, to one that waits at `fd`, with the first process of it whose scope is made already (0: of none): it answers with "taken" there. Negative, -EMSGSIZE also: it has nothing of it. */
int shim_hand_over(const Launcher *l, const LaunchPlan *plan, int fd, pid_t made, int *ret_channel);
