/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts bailey with what the shim was given. */

#include "shim/options.h"

/* What the shim keeps of the child: its own ends, -EBADF where there is none. */
typedef struct Child {
        pid_t pid;
        int gate;            /* where it waits to be let go; its closing ends it */
        int report, console; /* SOCK_SEQPACKET */
        int log;             /* bailey's own messages and its closing line */
        int input;           /* of an agent that is talked to: what it reads */
        int output, error;   /* the payload's, when the caller gave no files */
} Child;

#define CHILD_NONE {.gate = -EBADF, .report = -EBADF, .console = -EBADF, .log = -EBADF, .input = -EBADF, .output = -EBADF, .error = -EBADF}

void child_done(Child *c); /* closes; does not kill */

/* Closes the options' descriptors that only the payload has use for, so that their readers see the end. 0, or a negative errno with
 * *ret_what, a word for the log. */
int child_start(ShimOptions *o, Child *ret, const char **ret_what);

/* A process for child_start(), before anything is known that it is to run: bailey, executed already, with no descriptor but its gate, at which it waits
 * when this returns. It ends with this process. -ECHILD: it could not be executed. `bailey` is borrowed. */
int child_fork_ahead(int bailey, pid_t *ret_pid, int *ret_gate);
/* Where there is one that is not used. */
void child_drop_ahead(ShimOptions *o);

/* Lets one go that waits, as all do when there is a scope to be made. `cgroup` is the directory of the scope's group, which bailey is told in
 * $BAILEY_CGROUP_ROOT; NULL: it is told none. */
int child_release(Child *c, const char *cgroup);
