/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks at the calls of a run and keeps what its plan does not grant. This is no boundary: a call is let go on after its arguments
 * were read, and a program that changes them meanwhile, or makes calls that name no path, is not seen to do what it does. */

#include "bailey/access.h"
#include "bailey/audit-resolve.h"
#include "bailey/observer.h"

struct seccomp_notif;
struct seccomp_notif_resp;

typedef struct Audit {
        Observer observer; /* first: its functions are given that */
        Trace trace;       /* accesses, calls and what was lost are filled in here */
        const Plan *plan;
        ProcessView view;
        struct seccomp_notif *request;
        struct seccomp_notif_resp *response;
        size_t request_size, response_size;
        bool target_seen; /* its own execve() was */
} Audit;

void audit_init(Audit *a, bool unconfined);
void audit_done(Audit *a);
