/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The log's lines about what was refused. A refusal costs a session nothing, and tens of thousands fit into a second: the lines must not fill a
 * disk. What was let through is always logged. */

#include "basic/clock.h"

#define REFUSAL_LINES_A_MINUTE 250U /* at some 200 bytes a line 70 MB a day at most */

typedef struct RefusalLog {
        usec_t since; /* the minute's beginning, monotonic; 0 = none yet */
        unsigned n;   /* lines in it */
        uint64_t left_out;
} RefusalLog;

/* True when a line may be written now. What was left out before is said first. */
bool refusal_log_take(RefusalLog *l, const char *session, usec_t now);

/* Says what was left out, if anything was. */
void refusal_log_sum_up(RefusalLog *l, const char *session);
