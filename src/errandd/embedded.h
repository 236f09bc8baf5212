/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errandd in embedded mode: a private socket, its own children, and an end when nobody is left. */

#include "basic/macro.h"

typedef struct EmbeddedOptions {
        const char *state_dir, *config, *user; /* NULL: the usual */
} EmbeddedOptions;

/* Exit codes, as --help says them. Only 1 is worth another try. */
enum {
        EXIT_STOPPED = 0,
        EXIT_FAILED = 1,
        EXIT_CONFIGURATION = 2,
        EXIT_NOT_ENFORCEABLE = 3,
        EXIT_SERVED_ALREADY = 4,
};

/* Until it is told to end, or has had neither client nor session for EMBEDDED_IDLE_SECONDS. Messages go to standard error until the socket listens; then that
 * is closed, which tells whoever waits, and they go to errandd.log beside the socket. Returns an exit code. */
#define EMBEDDED_IDLE_SECONDS 5U
int embedded_run(const EmbeddedOptions *options);
