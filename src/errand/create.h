/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Manager.CreateSession from what the command line says. */

#include "errand/attach.h"

/* Whether a new session gets a terminal: when both ends of this program are one, unless the request says otherwise. */
bool create_interactive(const Request *q);

/* *ret_id is to free. pipes NULL: the session is not given this program's input and output. An ExitCode. */
int create_session(Connection *c, const Request *q, bool interactive, AttachPipes *pipes, char **ret_id);
