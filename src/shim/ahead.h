/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A shim that was started before there was a session for it. It has its libraries, and nothing of anybody's: what a started one finds in its
 * arguments comes in one message, {"v":1,"type":"start","arguments":[…],"fds":[names]}, and is answered with {"type":"taken"} before
 * anything else is done. */

#include "basic/macro.h"

/* `errand-shim --wait-fd N TEXT`, as errand-launch writes it; *ret_fd is that SOCK_SEQPACKET socket. */
bool ahead_waits(int argc, char *argv[], int *ret_fd);

/* Waits. *ret_argc and *ret_argv, for shim_options_parse(), are kept until the program ends; `fd` is closed, and argv shows whose session it
 * is. 0; -ECONNRESET when nobody will come, which is no failure; else a negative errno after a line. */
int ahead_wait(int fd, int argc, char *argv[], int *ret_argc, char ***ret_argv);
