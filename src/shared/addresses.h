/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* May a session reach this address? Decided by the broker for each address at the moment of connecting, from one table that names the
 * source of every range (IANA special-purpose registries, cloud fabric addresses). */

#include <netinet/in.h>
#include <sys/socket.h>

#include "basic/macro.h"

typedef struct Address {
        int family; /* AF_INET or AF_INET6 */
        union {
                struct in_addr in4;
                struct in6_addr in6;
        };
} Address;

/* What an address is, in a word for the log ("loopback", "private", "link-local", "cloud-fabric", "own", …), or NULL when it is
 * public. IPv4 inside IPv6 (mapped, compatible, 6to4, Teredo, NAT64 and its local prefix, ISATAP) is judged by the IPv4
 * address as well. The host's own interface addresses are "own" (getifaddrs at each call). */
const char *address_judge(const Address *address);

/* The table alone, without the host's own addresses: pure, for tests and fuzzing. */
const char *address_classify(const Address *address);

/* Of that kind, what no exception lifts: whoever wrote one did not mean it. */
bool address_never_opened(const char *what);

/* Canonical text only: exactly what inet_ntop would print. -EINVAL otherwise. */
int address_parse(const char *text, Address *ret);
const char *address_format(const Address *address, char buffer[INET6_ADDRSTRLEN]);
bool address_equal(const Address *a, const Address *b);
socklen_t address_to_sockaddr(const Address *address, uint16_t port, struct sockaddr_storage *ret);
