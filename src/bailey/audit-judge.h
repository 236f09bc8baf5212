/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/access.h"
#include "bailey/plan.h"

/* The operations (of AccessOperation) that a confined run by that plan can do at a path of its world, by what is mounted there and what
 * Landlock grants. A name that is in no tree of the host's can be looked at where it only leads to what is. */
unsigned plan_allows(const Plan *plan, const char *path);

/* Whether its network lets one operation through to "ADDRESS:PORT" outside. What stays on a loopback of one's own counts as outside. */
bool plan_allows_address(const Plan *plan, unsigned operation, const char *address);
