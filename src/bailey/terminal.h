/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The caller's terminal and the one that is opened inside, joined by a process that copies between them: so that nothing inside
 * holds the caller's own, and job control, sizes and modes are the inner one's. */

#include "basic/macro.h"

typedef struct Terminal {
        int socket; /* for the inner terminal's master (console.h), -EBADF after the end */
        pid_t pid;  /* of the copier */
        uint16_t rows, columns;
} Terminal;

/* Standard input and output are a terminal. */
bool terminal_present(void);

/* Starts the copier; it waits for the master and leaves the caller's terminal alone until something is written inside. Logs. */
int terminal_start(Terminal *ret);

/* Waits until the last of what was written inside has been copied, and the caller's terminal is as it was. */
void terminal_end(Terminal *t);
