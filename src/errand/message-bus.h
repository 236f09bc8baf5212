/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errandd on a message bus: the system's, or that of one's own session. */

#include <systemd/sd-bus.h>

#include "basic/clock.h"

#define BUS_NAME "org.errand1"

typedef enum MessageBusKind {
        MESSAGE_BUS_SYSTEM,
        MESSAGE_BUS_USER,
} MessageBusKind;

/* Until both sides know each other; sd_bus_call() would wait for it much longer. -ETIMEDOUT. */
int bus_await_ready(sd_bus *bus, usec_t timeout);

/* 0 with *ret, a connection whose calls may pass descriptors, and the unique name that errandd has on it, so that nobody who takes its name over later
 * hears what was meant for it. -ENOMEDIUM: there is no such bus; -ENXIO: errandd is not on it and cannot be started; -EACCES, -EPERM: the bus may not be
 * used; -ETIMEDOUT: the bus does not answer; -EREMOTEIO: errandd was to be started and was not, *ret_problem (to free) says why. */
int message_bus_open(MessageBusKind kind, bool may_start, sd_bus **ret, char **ret_owner, char **ret_problem);
