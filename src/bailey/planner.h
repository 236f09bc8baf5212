/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes a Plan of a Policy: pure but for looking at directory entries, deterministic, without side effects. */

#include "bailey/plan.h"
#include "bailey/policy.h"

/* argv[0] is the program as the caller wrote it. network is borrowed by the plan. 0 with *ret set; -ELOOP when the home became a link since the policy was
 * resolved; -ENOMEM. */
int plan_new(const Policy *p, char *const *argv, const Network *network, Plan **ret);

/* Where the private home is mounted: the real path of what HOME names, else of the home itself. */
int planner_home_inside(const Policy *p, char **ret);
