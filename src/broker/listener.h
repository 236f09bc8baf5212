/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a session may hand over as its proxy's listener. */

#include "basic/macro.h"

/* Is fd a listening TCP socket on 127.0.0.0/8 in a network namespace whose cookie is not own_netns? 0 with address (network byte
 * order) and port, or -EBADMSG with a static phrase. */
int listener_check(int fd, uint64_t own_netns, uint32_t *ret_address, uint16_t *ret_port, const char **ret_problem);

/* SO_NETNS_COOKIE (Linux 5.14) of a socket. */
int netns_cookie(int fd, uint64_t *ret);
