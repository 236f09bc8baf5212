/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Accepts a session's connections in a thread of its own. A session that kept a duplicate of its listener can clear O_NONBLOCK,
 * which belongs to the open file that both share, and take the connection that poll(2) reported: accept(2) then blocks. So the loop
 * never touches the listener: only this thread does, and it hands connections over through a pipe. */

#include <systemd/sd-event.h>

#include "basic/macro.h"

typedef struct Acceptor Acceptor;

/* fd is a connection, non-blocking and CLOEXEC, now the callee's. */
typedef void (*AcceptHandler)(void *userdata, int fd);

/* Takes the listener on success. */
int acceptor_new(sd_event *event, int listener, AcceptHandler handler, void *userdata, Acceptor **ret);

/* Ends the listening at once, also while the thread stands in accept(2), and frees the port. Connections that were accepted
 * but not handed over are closed. */
Acceptor *acceptor_free(Acceptor *a);
DEFINE_CLEANUP(Acceptor *, acceptor_free);

/* The same, but another process goes on with the listener: its port stays, and what connects meanwhile waits for that. */
Acceptor *acceptor_leave(Acceptor *a);
