/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Pipes for splice(2), lent to a tunnel's direction only while it has bytes in flight: an idle tunnel holds none. */

#include "basic/macro.h"

#define PIPES_KEPT 32U                  /* idle ones that wait for the next user */
#define PIPE_WANTED_SIZE (256U * 1024U) /* what one splice moves; a kernel that gives less is fine */

typedef struct Pipe {
        int read, write; /* both O_NONBLOCK; -EBADF = none */
} Pipe;

#define PIPE_NONE ((Pipe){-EBADF, -EBADF})

typedef struct PipePool {
        Pipe idle[PIPES_KEPT];
        size_t n;
} PipePool;

int pipe_pool_take(PipePool *p, Pipe *ret);
/* Takes *pipe back; one that is not empty is closed. Leaves PIPE_NONE behind. */
void pipe_pool_give(PipePool *p, Pipe *pipe, bool empty);
void pipe_pool_done(PipePool *p);
