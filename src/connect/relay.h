/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* Copies standard input to fd and fd to standard output until both directions have ended, each by itself: an end of file on one side is
 * passed on, and the other direction goes on. Blocks; SIGPIPE has to be ignored. 0, or the negative errno of a connection that broke. That
 * nobody reads standard output any more is no error, and the end. */
int relay(int fd);
