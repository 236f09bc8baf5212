/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The conversation of one session as whoever prompts or follows it sees it, over restarts of errandd. */

#include "errand/listener.h"
#include "errand/update-printer.h"

typedef struct Conversation {
        Listener listener;
        UpdatePrinter printer;
        const char *id;
        const char *prompt; /* to be sent; NULL: whatever is said is followed, until the session ends */
        uint64_t number;    /* of the prompt, once it was taken; 0 before */
        bool sent, started, interrupted;
        bool looking; /* errandd is back, and is asked until it knows whether the turn goes on */
} Conversation;

/* q's first operand is the session. Prints until the turn of the prompt, or the session, has ended. An ExitCode. */
int conversation_run(const Request *q, const char *prompt /* NULL: none, it is followed */);

/* Sends one, *ret_number of the session's. An ExitCode. */
int conversation_send(Connection *c, const char *id, const char *text, uint64_t *ret_number);
