/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errandd in embedded mode: a private socket, its own children, and an end when nobody is left. */

#include "basic/macro.h"

typedef struct EmbeddedOptions {
        const char *state_dir, *config, *user; /* NULL: the usual */
} EmbeddedOptions;

/* Until it is told to end, or has had neither client nor session for EMBEDDED_IDLE_SECONDS. Messages go to standard error until the socket listens; then that
 * is closed, which tells whoever waits, and they go to errandd.log beside the socket. Returns an exit code (daemon.h). */
#define EMBEDDED_IDLE_SECONDS 5U
int embedded_run(const EmbeddedOptions *options);
