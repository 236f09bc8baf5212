/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* pasta, which connects a network namespace to the host's network from outside. It goes into the background once the namespace is
 * configured; a keeper, which is a child of this process, adopts it and ends it: when it is told to, and when this process dies. */

#include "bailey/failure.h"
#include "bailey/network.h"

/* The program in its fixed directories, never in PATH; NULL: it is not there. */
const char *pasta_find(void);
#define PASTA_PLACES "/usr/bin and /usr/local/bin"

/* Its argument list, for strv_free(). -ENOMEM. */
int pasta_arguments(const Network *n, const char *program, char ***ret);

/* Returns when the namespace is configured. The fds are of its user and network namespace, borrowed. */
int pasta_start(const Network *n, int user_namespace, int network_namespace, pid_t *ret_keeper, Failure *f);

/* True, once, when it ended by itself; *keeper is then 0. */
bool pasta_ended(pid_t *keeper);
void pasta_stop(pid_t *keeper);
