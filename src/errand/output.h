/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where output goes and how it is dressed: width, colours, a pager for what is longer than the screen; times and sizes as people read them. */

#include "basic/clock.h"
#include "errand/request.h"
#include "errand/table.h"

/* Sends standard output through a pager when it is a terminal and the request does not forbid it; output_end() waits for the reader. The
 * pager is $ERRAND_PAGER, $PAGER, less, more. */
void output_begin(const Request *q);
void output_end(void);

/* Flushes standard output. The errno of the first write to it that failed, or 0. */
int output_error(void);

/* The same as an ExitCode: a reader that has seen enough is no failure; all else is logged, once. */
int output_flush(void);

/* Tables are as wide as they get from then on. */
void output_full(void);
unsigned output_width(void); /* 0: not a terminal, or nothing is to be cut */
bool output_colours(void);

/* Prints a table in the request's way. An ExitCode. `none` is said instead of an empty table. */
int output_table(const Request *q, const Table *t, const char *none);

/* "2026-11-29 15:04:05" in local time; "" for 0. */
#define TIME_TEXT_MAX 32U
const char *time_text(usec_t realtime, char buffer[static TIME_TEXT_MAX]);

/* "12.3K" of 1024. */
#define BYTES_TEXT_MAX 24U
const char *bytes_text(uint64_t bytes, char buffer[static BYTES_TEXT_MAX]);
