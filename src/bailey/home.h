/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The private home: $XDG_DATA_HOME/bailey/PROGRAM/home, or a directory that a file or --home names instead. */

#include "bailey/plan.h"
#include "bailey/policy.h"

/* What a private home is called: by the program, or for a shell by its directory: "shell/thing-DIGITS". */
int home_name_program(const char *target, char **ret);
int home_name_directory(const char *directory, char **ret);

/* Fills p->home, home_name and state_directory from p->account and the environment, and makes config_directory real. Makes
 * nothing on the disk. name: as above; `chosen` comes from a file, `option` from the command line and wins; both may be NULL. */
int home_settle(Policy *p, const char *name, const char *chosen, const char *option, Findings *findings);

/* Makes p->home, mode 0700. No component below the data directory may be a link: a session could have left one. Logs. */
int home_make(const Policy *p);

/* Makes the directory of bailey's own configuration where the policy lets a session write in its place: what is not there
 * cannot be protected, and a session would leave the next one's policy in it. Logs. */
int home_make_configuration(const Policy *p);

/* Makes the places inside the home that later steps mount on, when HOME names another path than the home's own. Logs. */
int home_make_mount_points(const Policy *p, const Plan *plan);
