/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Somebody who is shown the system calls of a run (audit-calls.h) before the kernel does them. It decides nothing: whatever it sees
 * goes on, and is refused or not as in any other run. */

#include "bailey/plan.h"

typedef struct Observer {
        bool unconfined; /* neither namespaces nor Landlock nor the filter: the command does what its caller may do */
        int listener;    /* seccomp's, -EBADF before the command's set-up and after its end */

        /* Called once, before the command runs; takes listener. plan is good until the end of the run. Negative: nothing runs. */
        int (*begin)(struct Observer *o, const Plan *plan, int listener);
        /* A call waits at the listener. Does not block. */
        void (*serve)(struct Observer *o);
} Observer;
