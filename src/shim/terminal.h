/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A session's terminal as seen from outside: its master, the clients that are attached, and what they may lag behind. The payload is never
 * held up by a client for longer than CLIENT_PATIENCE_USEC: one that lags more is let go. Memory is bounded whatever anyone does. */

#include <systemd/sd-event.h>

#include "shim/transcript.h"

typedef struct Terminal Terminal;

/* Called once, when the last output of the payload was read. */
typedef void (*TerminalEnd)(void *userdata);

/* `stream` is borrowed. The master comes later. */
int terminal_new(sd_event *event, TranscriptStream *stream, TerminalEnd end, void *userdata, Terminal **ret);
Terminal *terminal_free(Terminal *t);
DEFINE_CLEANUP(Terminal *, terminal_free);

/* Takes the master. The size that was asked for is set. */
int terminal_open(Terminal *t, int master);

int terminal_resize(Terminal *t, uint16_t rows, uint16_t columns);

/* A new client: *ret_fd, its end of a stream socket, is the caller's. It is shown the last output again. -EMFILE: there are CLIENTS_MAX. */
int terminal_attach(Terminal *t, int *ret_fd);
/* The same with our end of a stream socket, which is taken. */
int terminal_add_client(Terminal *t, int fd);

/* The payload is gone: what is left to read is read, then TerminalEnd is called. */
void terminal_finish(Terminal *t);

/* True while a client has not been sent everything; terminal_free() does not wait. */
bool terminal_has_pending(const Terminal *t);
/* Clients that were ever attached. */
size_t terminal_clients_seen(const Terminal *t);
/* Those that are attached now. */
size_t terminal_clients(const Terminal *t);
