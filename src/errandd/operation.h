/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A call that is answered later. It lives until its Done comes, its client or not. */

#include "errandd/bus-handler.h"

typedef struct Operation Operation;

/* result: what it answers with, as a signature: "", "h", "o", "s", "t" or "as". */
int operation_new(BusLink *l, sd_bus_message *call, const char *result, Operation **ret, sd_bus_error *error);
Operation *operation_free(Operation *o); /* without an answer */
/* What a handler returns when the function that got o as its Done's userdata returned r: o is freed and f becomes the error, or it is answered later. */
int operation_begun(Operation *o, int r, Fault *f, sd_bus_error *error);
/* For result "s", before its Done: the text, which is taken. */
void operation_set_text(Operation *o, char *text);
/* Its call and its client, both borrowed; NULL when the client has gone. */
sd_bus_message *operation_call(Operation *o, BusLink **ret_link);
/* For results "o", "t" and "as"; they answer and free. */
void operation_answer_path(Operation *o, const Fault *fault, const char *path);
void operation_answer_number(Operation *o, const Fault *fault, uint64_t number);
void operation_answer_texts(Operation *o, const Fault *fault, char *const *texts);
void operation_done(Session *s, const Fault *fault, int fd, void *userdata); /* a Done, for results "", "h" and "s"; answers and frees */
void operation_forget(BusLink *l); /* of a client that goes */
