/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one way out, whoever asks in whatever protocol: host and port judged, a grant used, the name looked up, each address judged, a tunnel.
 * A connection gets here only with the session's credential. */

#include "broker/connection.h"
#include "broker/hosts.h"

/* Everything that can be said before a lookup. True: go on; a grant, if it took one, is used. False: c has its refusal. */
bool egress_judge(Connection *c, const Host *host, uint16_t port);

/* egress_judge(), then a dial, then a tunnel; or c has its refusal. */
void egress_open_tunnel(Connection *c, const Host *host, uint16_t port);
