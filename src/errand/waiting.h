/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calls that may take long, and what they wait for. */

#include "errand/connect.h"

#define WAITING_USEC (3 * USEC_PER_SEC) /* so long nobody wonders */

/* sd_bus_call() without a limit, which says after a while what it waits for: of session id, when there is one. Not from a handler, and not where signals
 * of the connection are listened to: plain then. */
int waiting_call(Connection *c, const char *id, sd_bus_message *m, sd_bus_error *e, sd_bus_message **ret);

/* What a session that has not got there waits for, of the answer to Describe: a phrase, "" when there is none; to free. */
char *waiting_text(sd_bus_message *description);
