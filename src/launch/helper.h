/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Work that may take its time, in a child of this program's own. */

#include "launch/launcher.h"

#define HELPER_RESULT_MAX 256U

typedef struct HelperWork {
        int (*run)(const int *fds, void *result); /* in the child: 0 or a negative errno */
        const char *type;                         /* of the reply that add() fills; NULL: "ok" */
        void (*add)(JsonWriter *w, const void *result);
} HelperWork;

/* Replies when the work has ended, with the errno that it returned if not with 0. The descriptors are borrowed; result has HELPER_RESULT_MAX zeroed bytes. */
int helper_start(Launcher *l, Ticket ticket, const HelperWork *work, const int *fds, size_t n_fds);
