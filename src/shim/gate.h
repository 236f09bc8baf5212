/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The socket that the launcher gave, on which it hears how the start went, and lets a session go whose scope it made. */

#include "shim/shim.h"

/* The last message: "ready", or "error" with a text. Where it was sent already, nothing. A negative errno: nobody hears it. */
int gate_tell(Shim *s, const char *type, const char *text);
/* "ready". Where the launcher has gone by now, errandd has heard of no session, and found no socket of it if it looked before that was made: it is killed,
 * with s->refused set. */
void gate_tell_ready(Shim *s);

/* Tells which process waits. It is let go, or killed with s->refused set, when the launcher has answered. */
int gate_ask_for_scope(Shim *s);
/* Of one whose scope is made already: let go, or killed with s->refused set when it is not in it. */
void gate_let_go(Shim *s);
