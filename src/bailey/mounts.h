/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/failure.h"
#include "bailey/gap.h"
#include "bailey/network-namespace.h"
#include "bailey/plan.h"

/* In the new namespaces, with their capabilities: carries out the plan's steps and makes the result the root of this process;
 * the old one is out of reach afterwards. The working directory is the new root's. `network`, if one was begun, is entered on the
 * way: a sysfs shows that of whoever mounts it. Adds GAP_SYSFS to *gaps when there is no /sys to be had. On failure the process is to exit: its view of files is undefined. */
int mounts_build(const Plan *plan, NetworkNamespace *network, GapSet *gaps, Failure *f);
