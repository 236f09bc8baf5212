/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/failure.h"

/* Opens a terminal, in the devpts instance at `devpts` of this process's root, and sends its master over `sock` as
 * {"v":1,"type":"console","fds":["terminal"]}. Its size is set when neither number is 0. *ret_terminal is the other side (CLOEXEC, the caller's). */
int console_open(const char *devpts, int sock, uint16_t rows, uint16_t columns, int *ret_terminal, Failure *f);

/* In the process that will execute the payload: a new session with the terminal as its controlling one on 0, 1 and 2.
 * Only calls the kernel. 0 or a negative errno. */
int console_adopt(int terminal);
