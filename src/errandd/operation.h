/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A call that is answered later. It lives until its Done comes, its client or not. */

#include "errandd/bus-handler.h"

typedef struct Operation Operation;

/* result: "", or "h" and "o" for what it answers with. */
int operation_new(BusLink *l, sd_bus_message *call, const char *result, Operation **ret, sd_bus_error *error);
/* It answers with that text, which is taken, and not with the result. */
void operation_set_text(Operation *o, char *text);
/* It answers with that number, of type t. */
void operation_set_number(Operation *o, uint64_t number);
Operation *operation_free(Operation *o); /* without an answer */
/* Its call and its client, both borrowed; NULL when the client has gone. */
sd_bus_message *operation_call(Operation *o, BusLink **ret_link);
void operation_done(Session *s, const Fault *fault, int fd, void *userdata); /* a Done; answers and frees */
void operation_forget(BusLink *l); /* of a client that goes */
