/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The errors of the bus API, org.errand1.Error.*, and the errno that each stands for: one table for the daemon and for its clients. */

#include <systemd/sd-bus.h>

#include "basic/macro.h"

#define BUS_ERROR_PREFIX "org.errand1.Error."

typedef enum BusError {
        BUS_ERROR_NONE,
        BUS_ERROR_INVALID_ARGUMENT,
        BUS_ERROR_NOT_FOUND, /* not there, and not yours: nobody can tell them apart */
        BUS_ERROR_NOT_PERMITTED,
        BUS_ERROR_WRONG_STATE,
        BUS_ERROR_EXISTS,
        BUS_ERROR_LIMIT,
        BUS_ERROR_CONFIGURATION,
        BUS_ERROR_NOT_ENFORCEABLE,
        BUS_ERROR_SETUP,
        BUS_ERROR_STORAGE,
        _BUS_ERROR_MAX,
        _BUS_ERROR_INVALID = -EINVAL,
} BusError;

const char *bus_error_to_name(BusError e); /* NULL for none */
BusError bus_error_from_name(const char *name);
int bus_error_to_errno(BusError e); /* positive; 0 for none */

#define BUS_ERROR_TEXT_MAX 2048U /* bytes */
#define BUS_ERROR_PROBLEMS_MAX 8192U /* of BUS_ERROR_CONFIGURATION: each problem has a line */

/* Sets *ret and returns the error's negative errno, as a handler does. Text that is not UTF-8 is escaped: the bus carries no other. What is longer than
 * these is cut. */
int bus_error_set(sd_bus_error *ret, BusError e, const char *text);
int bus_error_setf(sd_bus_error *ret, BusError e, const char *format, ...) _printf_(3, 4);
