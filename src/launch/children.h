/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The shims that are children of this launcher, and those of an earlier one that were found by their sockets. */

#include "launch/launcher.h"
#include "launch/request.h"

/* Starts a shim, and a scope around what it starts when the plan has one; the reply comes when that is on its way or has failed. Takes the
 * plan. Negative with *ret_problem (to free; may be NULL): nothing was started. */
int session_launch(Launcher *l, LaunchPlan *plan, Ticket ticket, char **ret_problem);

/* A session of that id; where there is none and `socket` is a shim's, one found there (of this account, alive). -ENOENT. */
int session_find(Launcher *l, const char *id, const char *socket, Session **ret);

pid_t session_pid(const Session *s);
int session_signal(Session *s, int signal);

/* Asks every shim to stop; the event loop exits when the last is gone. Nothing is waited for longer than grace periods and LAST_WAIT_USEC. */
void sessions_end(Launcher *l);
void sessions_free(Launcher *l); /* forgets them: shims go on */

/* Somebody has asked the user manager to stop a session's scope: errandd is told, once. */
void session_stopping(Launcher *l, const char *unit);
