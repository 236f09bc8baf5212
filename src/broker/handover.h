/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The session socket: where a session hands its listener over, once. {"v":1,"type":"listeners","token":…,"fds":["proxy"]} →
 * {"v":1,"type":"ready"}, or {"v":1,"type":"error","text":…} and the close. The token decides, not the path or the peer's uid;
 * after three wrong ones the socket is closed for good. */

#include "broker/setup.h"

typedef struct Broker Broker;
typedef struct Handover Handover;

/* fd, a listening SOCK_SEQPACKET socket, is taken always. */
int handover_new(Broker *b, int fd, Handover **ret);
Handover *handover_free(Handover *h);
DEFINE_CLEANUP(Handover *, handover_free);

/* The broker is set up: what has come is read. A session may be on its way before its broker is, and waits. */
void handover_begin(Handover *h);

/* The session is closed. */
void handover_end(Handover *h);

/* How many were tried; 0 for NULL. */
unsigned handover_wrong_tokens(const Handover *h);
/* Goes on where another process was. */
void handover_resume(Handover *h, unsigned wrong_tokens, bool handed_over);
