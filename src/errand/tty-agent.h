/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* polkit's agent for terminals: it asks whoever sits at this one for a password when a call needs an authorization. It is polkit's own program and
 * the password goes from it to polkit; errand never sees it. */

#include <sys/types.h>

/* Where there is a terminal, no other agent, and the program: its process id; 0: none is needed or there is none. Waits until it is registered. */
pid_t tty_agent_start(void);

/* Before the terminal is used for something else. */
void tty_agent_stop(pid_t pid);
