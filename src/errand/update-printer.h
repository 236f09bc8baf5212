/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A conversation as people and programs read it. What an agent says cannot move the cursor, or forge a line of ours that begins with "[". */

#include "basic/json-writer.h"
#include "errand/request.h"
#include "errand/update.h"

typedef enum UpdateOpen {
        UPDATE_OPEN_NONE, /* at the beginning of a line */
        UPDATE_OPEN_MESSAGE,
        UPDATE_OPEN_THOUGHT,
} UpdateOpen;

typedef struct UpdatePrinter {
        const Request *request; /* its first operand is the session */
        bool answer;            /* only what is said stands on standard output, the rest beside it */
        UpdateOpen open;        /* what the last line, which has no end yet, belongs to */
        int error;              /* errno of the first write that failed; 0: none */
} UpdatePrinter;

void update_printer_show(UpdatePrinter *p, const Update *u);
/* Something else is about to be printed. */
void update_printer_end_line(UpdatePrinter *p);

/* {"timeUSec", "event", "session"}, to be added to, and ended with update_printer_end(). */
void update_printer_begin(const UpdatePrinter *p, JsonWriter *w, const char *event);
void update_printer_end(UpdatePrinter *p, JsonWriter *w);
