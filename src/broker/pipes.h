/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Pipes for splice(2), lent to a tunnel's direction only while it has bytes in flight: an idle tunnel holds none. */

#include "basic/macro.h"

#define PIPES_KEPT 32U                  /* idle ones that wait for the next user */
#define PIPE_SIZE (256U * 1024U)        /* what one splice moves; a kernel that gives less is fine */
#define PIPE_LARGE_SIZE (1024U * 1024U) /* fs.pipe-max-size. A quarter less work, but an account has 64 MiB (fs.pipe-user-pages-soft) for all of its pipes: */
#define PIPES_LARGE 8U                  /* so many of a broker at a time */

typedef struct Pipe {
        int read, write; /* both O_NONBLOCK; -EBADF = none */
        bool large;
} Pipe;

#define PIPE_NONE ((Pipe){-EBADF, -EBADF, false})

typedef struct PipePool {
        Pipe idle[PIPES_KEPT];
        size_t n, n_large; /* idle, and large ones wherever they are */
} PipePool;

int pipe_pool_take(PipePool *p, Pipe *ret);
/* Takes *pipe back; one that is not empty is closed. Leaves PIPE_NONE behind. */
void pipe_pool_give(PipePool *p, Pipe *pipe, bool empty);
void pipe_pool_done(PipePool *p);
