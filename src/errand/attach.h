/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* This program's input, output and signals, joined to a session until it ends or is left. */

#include "errand/connect.h"

typedef enum AttachFlags {
        ATTACH_START = 1 << 0,    /* starts the session first */
        ATTACH_TERMINAL = 1 << 1, /* it has a terminal, which is shown here */
        ATTACH_OWNER = 1 << 2,    /* signals are the command's, as for a command that a shell started; else they detach */
        ATTACH_QUIET = 1 << 3,
        ATTACH_SERVICE = 1 << 4,  /* a unit stands for it: signals stop it, what it writes is printed from its transcript, and that it runs is told by sd_notify(3) */
} AttachFlags;

/* Pipes that stand for sockets of ours, since a session is given none: `out` is copied to stdout, `error` to stderr, stdin to `in`. -EBADF each
 * where there is no need. Closed by attach_session(). */
typedef struct AttachPipes {
        int in, out, error;
} AttachPipes;

/* Returns the command's exit code, or one of EXIT_ATTACH_NOT_PERMITTED, EXIT_DETACHED, EXIT_LOST, EXIT_NOT_SET_UP, after it said why. */
int attach_session(Connection *c, const char *id, AttachFlags flags, AttachPipes *pipes);
