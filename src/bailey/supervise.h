/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <signal.h>

#include "bailey/enter.h"
#include "bailey/failure.h"
#include "bailey/init.h"

/* The outer half of a run: bailey itself, which is not confined and only waits, forwards and reports. */
typedef struct Supervisor {
        pid_t child;      /* the sandbox's first process, not reaped before the end */
        int pidfd;        /* its, -EBADF without namespaces */
        int control;
        int signals;      /* signalfd of all that is blocked */
        const InitProgress *progress;
        pid_t pasta;      /* its keeper, 0: none */
        bool interactive; /* the payload is in the caller's terminal: stop when it stops */
        const RunOptions *options;
        const Plan *plan;
        RunResult *result;
} Supervisor;

/* Blocks all signals but the synchronous ones and gives SIGCHLD its default action, so that an ignored one does not lose the
 * child's status. */
typedef struct SignalState {
        sigset_t mask;
        struct sigaction child;
} SignalState;

int signals_take(SignalState *state, int *ret_fd);
void signals_give_back(const SignalState *state, int fd);

/* Ends a child that was not yet supervised. */
void supervisor_abandon(Supervisor *s);

/* Runs until the child is gone and reaped. 0 with the result filled when the payload ran or execve() failed, or the child was
 * killed after it had begun; else negative with *f saying why. */
int supervise(Supervisor *s, Failure *f);
