/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Between child.c, which makes it, and child-ahead.c, which takes it to a process that was forked before. */

#include <limits.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "basic/macro.h"

#define CGROUP_VARIABLE "BAILEY_CGROUP_ROOT="

/* All that is needed between fork and exec, made before. */
typedef struct Start {
        char **argv, **environment;
        int bailey, project;
        int standard[3]; /* to become 0, 1, 2 */
        int keep[10];    /* stay open, each under its number; the first is bailey */
        size_t n_keep;
        pid_t parent;
        struct rlimit core;
        rlim_t file_max; /* 0: as it is */
        int gate, gate_end;  /* -EBADF: nothing to wait for */
        char **cgroup_place; /* in the environment */
        char cgroup[sizeof(CGROUP_VARIABLE) + PATH_MAX];
} Start;

/* In the child: the shim's death is bailey's, and bailey's is the sandbox's. Signals are as at first, and the session is its own. False: the shim is gone. */
bool child_follow(pid_t parent);

/* All of it that bailey needs, to one that child_fork_ahead() made. -EMSGSIZE, -EPIPE: it has nothing of it. */
int child_send(int gate, const Start *s);
