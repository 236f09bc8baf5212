/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The caller's terminal: raw while a session is attached to it, and as it was on every way out. */

#include "basic/macro.h"

/* -ENOTTY when fd is no terminal. From then on a fatal signal puts the terminal back, too. */
int terminal_raw(int fd);
/* As it was before terminal_raw(); safe in a signal handler, and when nothing is raw. */
void terminal_restore(void);

/* What the session left on the screen is undone at the same time: a string of control sequences, kept by reference until the next call. */
void terminal_undo(const char *sequences);

int terminal_size(int fd, uint16_t *ret_rows, uint16_t *ret_columns);
