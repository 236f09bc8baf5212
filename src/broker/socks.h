/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* SOCKS5 on a connection, message by message: a greeting, the session's credential, one CONNECT. What it leads to is egress.c's, as for
 * every other client. */

#include "broker/connection.h"
#include "broker/socks5.h"

/* Whether a connection's first byte is for this module: no HTTP message begins so. */
bool socks_begins(char first);

/* Looks at c->in[0…in_size), at least one byte. Afterwards c waits for more, writes, dials or is gone. */
void socks_process(Connection *c);

/* The answer to the CONNECT, and the end. c may be gone. */
void socks_refuse(Connection *c, Socks5Reply reply);

/* The whole of it took too long. c is gone. */
void socks_time_out(Connection *c);

/* What a tunnel begins with. */
Slice socks_established(void);
