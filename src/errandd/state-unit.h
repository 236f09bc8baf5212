/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* System mode: a state directory that the configuration names needs sockets of brokers in it, which units make. */

#include <systemd/sd-bus.h>

#include "errandd/manager.h"

/* Asks PID 1 where the session sockets are, and waits for the answer: before anything is served. ERROR_CONFIGURATION, with what to do, when they are not
 * below that directory. */
int state_unit_check(sd_bus *bus, const char *state, Fault *f);
