/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The private home: $XDG_DATA_HOME/bailey/PROGRAM/home, or a directory that a file or --home names instead. */

#include "bailey/plan.h"
#include "bailey/policy.h"

/* Fills p->home, home_is_private, state_directory and config_directory from p->account and the environment. Makes nothing.
 * target is the program as named; `chosen` comes from a file, `option` from the command line and wins; both may be NULL. */
int home_settle(Policy *p, const char *target, const char *chosen, const char *option, Findings *findings);

/* Makes p->home, mode 0700. No component below the data directory may be a link: a session could have left one. Logs. */
int home_make(const Policy *p);

/* Makes the places inside the home that later steps mount on, when HOME names another path than the home's own. Logs. */
int home_make_mount_points(const Policy *p, const Plan *plan);
