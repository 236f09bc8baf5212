/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <sys/socket.h>

#include "basic/macro.h"

/* Connects to a unix socket of that type over its directory, so that sun_path holds it whatever its length. Never blocks. *ret_peer is who
 * listens there. An fd, or a negative errno. */
int peer_connect(const char *path, int type, struct ucred *ret_peer);
