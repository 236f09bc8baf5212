/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The sandbox's own network namespace: a loopback interface, up, and nothing else. The kernel takes as long to make one as to mount
 * a whole new root, so the two are done side by side: one by a child of the supervisor, which has nothing else to do by then,
 * the other by the sandbox's first process, which enters the namespace when it needs it. */

#include "bailey/failure.h"

typedef struct NetworkNamespace {
        int control; /* borrowed: where it comes from (control.h); -EBADF: there is none to enter */
        int fd;      /* the namespace, from when it was entered on. The owner's to close */
} NetworkNamespace;

#define NETWORK_NAMESPACE_NONE {.control = -EBADF, .fd = -EBADF}

/* In the supervisor: makes it in the user namespace of the child `process` (a pidfd), which must be dumpable still, and sends it
 * over `control`. STAGE_NAMESPACES where there is none to be had; 0 also when the child has ended meanwhile, or ends for want of it,
 * which tells why. */
int network_namespace_give(int process, int control, Failure *f);

/* In the child: awaits it and enters. 0 also when there is none, or it was entered before. */
int network_namespace_enter(NetworkNamespace *n, Failure *f);

/* In the child, in it: sees that its loopback interface is up, which mostly it is by then. */
int network_namespace_raise(Failure *f);
