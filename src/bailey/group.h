/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The control group (cgroup v2) that a run's processes are in. It is made below $BAILEY_CGROUP_ROOT, a directory of the unified
 * hierarchy in which the caller may make groups; without that variable, and when a limit is asked for, below the group that bailey
 * is in, if the caller may make groups in that one. It is called "payload"; a second one at a time
 * has a number after it. Where the root holds bailey and a controller has to be enabled, bailey moves itself to "init" beside it,
 * because the kernel enables none in a group with processes of its own: that one stays, since bailey is in it to its end. */

#include "bailey/plan.h"

#define GROUP_ROOT_VARIABLE "BAILEY_CGROUP_ROOT"

typedef struct Group {
        int root, directory; /* -EBADF: none */
        char name[16];
        char lack[512];      /* what is not limited, or why there is no group; empty: nothing is missing */
        char *path;          /* of the root, to free */
        bool checked;        /* by group_check() */
} Group;

#define GROUP_NONE ((Group){.root = -EBADF, .directory = -EBADF})

/* Never fails: what could not be had is in `lack`. Limits are read back from the kernel. */
void group_make(const PlanLimits *limits, Group *ret);

/* Whether a process can be made in it, which is tried, and brought about where that can be. If not, it has no `directory` any more, and `lack`
 * says why. For a run that has seen it fail, or cannot. */
void group_check(Group *g);

/* Ends what is still in it and removes it. Takes GROUP_NONE, too. */
void group_remove(Group *g);

/* Processes that the kernel ended for want of memory, at the group's limit. */
uint64_t group_oom_kills(const Group *g);

/* In the process that is to be in it: 0 or a negative errno. */
int group_join(int directory);

/* What there is to limit by, for people: "memory, pids and cpu, below /sys/fs/cgroup/…". Makes and removes a group. A negative
 * errno with *ret saying what is missing. */
int group_probe(char ret[512]);
