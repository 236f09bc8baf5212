/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* CreateSession's options, read and checked for form. */

#include <systemd/sd-bus.h>

#include "errandd/manager.h"

/* What it points to is the message's or its own. */
typedef struct ParsedOptions {
        SessionOptions options;
        char **command, **allow, **env;
} ParsedOptions;

int session_options_read(sd_bus_message *m, ParsedOptions *ret, sd_bus_error *error);
void session_options_done(ParsedOptions *o);

/* For who describes them. */
const struct BusOption *session_options_table(size_t *ret_n);
