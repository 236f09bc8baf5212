/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/enter.h"

/* How far it came, in memory that it shares with the supervisor. */
typedef struct InitProgress {
        bool begun;   /* it ran at all */
        bool started; /* the payload may have begun to run */
} InitProgress;

/* What the sandbox's first process needs to know. All is decided before it exists. */
typedef struct InitContext {
        const Plan *plan;
        const RunOptions *options;
        int control;        /* see control.h */
        int group;          /* directory of the run's control group, -EBADF: none. With namespaces it is in there already */
        pid_t supervisor;
        uid_t uid;
        gid_t gid;
        bool isolated;      /* in new namespaces; else a plain child */
        bool own_network;   /* in a new network namespace, whatever `isolated` is */
        bool seccomp;       /* the kernel has filters */
        bool send_namespaces; /* with CONTROL_PREPARED */
        bool unconfined;    /* only observed, not isolated then */
        int landlock_abi;
        GapSet refused_gaps; /* one of these found inside ends the run */
        InitProgress *progress;
} InitContext;

/* Runs in the new process, all signals blocked: builds the world, confines itself, runs the payload, reaps, and exits. */
_noreturn_ void init_run(const InitContext *context);
