/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <netinet/in.h>
#include <sys/socket.h>

#include "broker/listener.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

int netns_cookie(int fd, uint64_t *ret) {
        uint64_t cookie;
        socklen_t size = sizeof(cookie);

        if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) < 0)
                return -errno;
        *ret = cookie;
        return 0;
}

static bool option_is(int fd, int option, int wanted) {
        int value;
        socklen_t size = sizeof(value);
        return getsockopt(fd, SOL_SOCKET, option, &value, &size) >= 0 && value == wanted;
}

int listener_check(int fd, uint64_t own_netns, uint32_t *ret_address, uint16_t *ret_port, const char **ret_problem) {
        struct sockaddr_in address = {};
        socklen_t size = sizeof(address);
        uint64_t cookie;

        *ret_problem = NULL;
        if (!option_is(fd, SO_DOMAIN, AF_INET))
                *ret_problem = "the listener is not an IPv4 socket";
        else if (!option_is(fd, SO_TYPE, SOCK_STREAM) || !option_is(fd, SO_PROTOCOL, IPPROTO_TCP))
                *ret_problem = "the listener is not a TCP socket";
        else if (!option_is(fd, SO_ACCEPTCONN, 1))
                *ret_problem = "the listener does not listen";
        else if (getsockname(fd, (struct sockaddr *) &address, &size) < 0 || size != sizeof(address) ||
                 address.sin_family != AF_INET || ntohl(address.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET || address.sin_port == 0)
                *ret_problem = "the listener is not bound to a loopback address and a port";
        else if (netns_cookie(fd, &cookie) < 0)
                *ret_problem = "the kernel does not tell the listener's network namespace (Linux 5.14 does)";
        else if (cookie == own_netns)
                *ret_problem = "the listener is in the broker's own network namespace, not in a session's";
        if (*ret_problem)
                return -EBADMSG;
        *ret_address = address.sin_addr.s_addr;
        *ret_port = ntohs(address.sin_port);
        return 0;
}
