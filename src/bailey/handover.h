/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/enter.h"
#include "bailey/failure.h"

#define HANDOVER_TIMEOUT_USEC (10 * UINT64_C(1000000))

/* Inside the new network namespace: opens the listener, hands it to the broker with the token, and awaits its "ready". Any
 * other answer, the end of the connection, or ten seconds of silence is a failure. */
int handover_run(const RunOptions *options, Failure *f);
