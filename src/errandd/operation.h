/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A call that is answered later. It lives until its Done comes, its client or not. */

#include "errandd/bus-handler.h"

typedef struct Operation Operation;

/* result: "", or "h", "o", "as" and "t" for what it answers with. */
int operation_new(BusLink *l, sd_bus_message *call, const char *result, Operation **ret, sd_bus_error *error);
/* It answers with that text, which is taken, and not with the result. */
void operation_set_text(Operation *o, char *text);
Operation *operation_free(Operation *o); /* without an answer */
/* Its call and its client, both borrowed; NULL when the client has gone. */
sd_bus_message *operation_call(Operation *o, BusLink **ret_link);
/* For results "o", "as" and "t"; they answer and free. */
void operation_answer_path(Operation *o, const Fault *fault, const char *path);
void operation_answer_texts(Operation *o, const Fault *fault, char *const *texts);
void operation_answer_number(Operation *o, const Fault *fault, uint64_t number);
void operation_done(Session *s, const Fault *fault, int fd, void *userdata); /* for "" and "h": a Done; answers and frees */
void operation_forget(BusLink *l); /* of a client that goes */
