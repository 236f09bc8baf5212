/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <systemd/sd-bus.h>

/* The bytes of a message with its head, about, at most `max`; -E2BIG beyond. Leaves it at its beginning. */
int message_size(sd_bus_message *m, size_t max, size_t *ret);
