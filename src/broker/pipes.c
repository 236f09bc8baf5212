/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "broker/pipes.h"

static void pipe_close(PipePool *p, Pipe *pipe) {
        if (pipe->large)
                p->n_large--;
        safe_close(pipe->read);
        safe_close(pipe->write);
        *pipe = PIPE_NONE;
}

int pipe_pool_take(PipePool *p, Pipe *ret) {
        int fds[2];

        if (p->n > 0) {
                *ret = p->idle[--p->n];
                return 0;
        }
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        *ret = (Pipe){.read = fds[0], .write = fds[1]};
        ret->large = p->n_large < PIPES_LARGE && fcntl(fds[1], F_SETPIPE_SZ, PIPE_LARGE_SIZE) >= 0;
        if (ret->large)
                p->n_large++;
        else
                (void) fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE);
        return 0;
}

void pipe_pool_give(PipePool *p, Pipe *pipe, bool empty) {
        if (pipe->read < 0)
                return;
        if (empty && p->n < PIPES_KEPT) {
                p->idle[p->n++] = *pipe;
                *pipe = PIPE_NONE;
        } else
                pipe_close(p, pipe);
}

void pipe_pool_done(PipePool *p) {
        while (p->n > 0)
                pipe_close(p, &p->idle[--p->n]);
}
