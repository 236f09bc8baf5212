/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* The port of a session's listener. It lies in a network namespace of the session's own, so that nothing of the host is in its way; no two live
 * sessions have the same, so that a log, or a tool that looks at several of them, is not misled. */

#define PORT_FIRST 20000U /* below Linux's range for outgoing connections (32768), above what services are known by */
#define PORT_LAST 32767U

typedef struct Ports {
        uint8_t used[(PORT_LAST - PORT_FIRST + 8) / 8];
} Ports;

/* A random one that is not in use: a session does not learn from its port how many others there are. -EAGAIN: all are. */
int ports_take(Ports *p, uint16_t *ret);
/* One that is known to be in use: -EBUSY when it is already, -ERANGE when it is none of these. */
int ports_reserve(Ports *p, uint16_t port);
void ports_release(Ports *p, uint16_t port);
