/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opaque bytes both ways between a client and an upstream, moved by splice(2). Each direction ends by itself: an end of file is
 * passed on as one, after the last byte; a reset is passed on as a reset. A side that does not read stops the other from being
 * read. The first message is compared with c->hello, if that is set: what it finds is logged, and with `enforce` nothing goes upstream before it is
 * found good; else the tunnel ends with -EKEYREJECTED. */

#include "broker/connection.h"

/* Takes c's socket over and sends `established`, which is copied, to the client first; the bytes in c->in go upstream first. upstream
 * (connected, non-blocking) is taken always. When the tunnel ends it calls connection_tunnel_done(). */
int tunnel_start(Connection *c, int upstream, Slice established, Tunnel **ret);
Tunnel *tunnel_free(Tunnel *t);

/* Bytes given to the upstream and to the client so far. */
void tunnel_counts(const Tunnel *t, uint64_t *ret_up, uint64_t *ret_down);
