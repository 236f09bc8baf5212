/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A bailey that was executed before there is a run for it, by errand-shim: loaded, and with nothing of anybody's, neither in its arguments nor
 * its environment. What another has from whoever executes it comes in one SOCK_SEQPACKET datagram of at most 64 KiB,
 * {"v":1,"type":"run","arguments":[…],"environment":[…],"core","fileMax","fds":[names]}: the soft RLIMIT_CORE, without which there is none but the
 * hard one, since errand-shim has taken its own from itself; RLIMIT_FSIZE, which else stays; descriptors called stdin, stdout, stderr, project (the
 * working directory) and by the numbers that they have in the arguments. Then it waits to be let go: a second datagram is the directory of the
 * control group, or nothing, ended by a NUL. */

#include "basic/macro.h"

/* `bailey --wait-fd N`, and nothing else; *ret_gate is that socket. */
bool ahead_waits(int argc, char *argv[], int *ret_gate);

/* Says with a NUL that it waits, and waits. Arguments, for options_parse(), environment, descriptors, working directory and limits are those of the run
 * then, and nothing else is open. A negative errno: nothing may be run; a line says why, unless whoever executed it is gone (-ECONNRESET). */
int ahead_wait(int gate, int *ret_argc, char ***ret_argv);
/* These arguments and that environment are wiped: for a process that was forked since, and has what it needs of them elsewhere. */
void ahead_wipe(void);
