/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A shim that was started before there was a session for it. It has its libraries, and nothing of anybody's: what a started one finds in its
 * arguments comes in one message, {"v":1,"type":"start","arguments":[…],"fds":[names]}, with "made" the pid of the process whose scope is made, and is
 * answered with {"type":"taken"} before anything else is done. Before it {"type":"prepare","fds":["bailey"]} may come, once: the session's first process is
 * made, for its scope to be made around it,
 * and {"type":"waiting","pid","fds":["pidfd"]} is the answer. */

#include <sys/types.h>

#include "basic/macro.h"

typedef struct Ahead {
        int argc;
        char **argv;     /* for shim_options_parse(), whose options point into it */
        pid_t first;     /* the first process; 0: none */
        int gate;        /* its; -EBADF */
        pid_t made;      /* the process that the launcher has seen in its scope; 0: none */
} Ahead;

void ahead_done(Ahead *a); /* the process and its gate are the shim's */

/* `errand-shim --wait-fd N TEXT`, as errand-launch writes it; *ret_fd is that SOCK_SEQPACKET socket. */
bool ahead_waits(int argc, char *argv[], int *ret_fd);

/* Waits. `fd` is closed, and argv shows whose session it is. 0; -ECONNRESET when nobody will come, which is no failure; else a negative errno after a line. */
int ahead_wait(int fd, int argc, char *argv[], Ahead *ret);
