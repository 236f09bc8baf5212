/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts one of our own programs: by descriptor, as the account it is to be, with the descriptors it is to have and no other. */

#include "errandd/account.h"

#define SPAWN_FDS_MAX 16U

typedef struct SpawnRequest {
        int program;             /* executed by descriptor */
        char *const *argv;
        char *const *environment; /* NAME=VALUE, all of it */
        const int *fds;          /* become 3, 4, … */
        size_t n_fds;
        const char *activation;  /* LISTEN_FDNAMES, as socket activation sets it; NULL: none */
        int log;                 /* becomes stdout and stderr; -EBADF: errandd's own stderr */
        const Identity *identity; /* NULL: errandd's own */
        bool bound;              /* it gets SIGTERM when errandd dies; else it is to find out by itself */
} SpawnRequest;

/* 0 with *ret set once the program was executed, or a negative errno: it is reaped then. SIGCHLD is
 * to be blocked, for sd_event_add_child(). */
int spawn(const SpawnRequest *q, pid_t *ret);
