/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who may: sees every message of a connection before libsystemd does. */

#include "errandd/bus-link.h"

int gate_filter(sd_bus_message *m, void *userdata /* the connection */, sd_bus_error *error);
/* Its client will most likely start the session next, which it has just made. */
void gate_foresee_start(BusLink *l, Session *s);
void gate_forget_session(Bus *b, const char *id); /* it has gone */
void gate_forget(BusLink *l); /* drops what waits for an authorization, or is known of one */
