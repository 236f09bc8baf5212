/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sockets: families and protocols, and whom they reach. The fixtures are listeners of the test, on loopback. */

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "escape.h"

/* FAMILY,TYPE,PROTOCOL */
static long try_socket(const char *a) {
        char *end;
        unsigned long family = strtoul(a, &end, 0), type = strtoul(end + 1, &end, 0), protocol = strtoul(end + 1, NULL, 0);
        return syscall(SYS_socket, family, type, protocol);
}
static long try_pair(const char *family) {
        int pair[2];
        return syscall(SYS_socketpair, number(family), SOCK_STREAM, 0, pair);
}

static socklen_t abstract_address(struct sockaddr_un *u, const char *name) {
        *u = (struct sockaddr_un) {.sun_family = AF_UNIX};
        strncpy(u->sun_path + 1, name, sizeof(u->sun_path) - 2);
        return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}
static int unix_socket(int type) {
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
        if (fd < 0)
                broken("socket");
        return fd;
}
static long try_abstract(const char *name) {
        struct sockaddr_un u;
        socklen_t size = abstract_address(&u, fixture(name));
        return connect(unix_socket(SOCK_STREAM), (struct sockaddr *) &u, size);
}
static long try_abstract_datagram(const char *name) {
        struct sockaddr_un u;
        socklen_t size = abstract_address(&u, fixture(name));
        return sendto(unix_socket(SOCK_DGRAM), "x", 1, 0, (struct sockaddr *) &u, size);
}
static long path_connect(int type, const char *path) {
        struct sockaddr_un u = {.sun_family = AF_UNIX};

        strncpy(u.sun_path, path, sizeof(u.sun_path) - 1);
        return connect(unix_socket(type), (struct sockaddr *) &u, sizeof(u));
}
static long try_path(const char *path) {
        return path_connect(SOCK_STREAM, place(path));
}
static long try_path_datagram(const char *path) {
        return path_connect(SOCK_DGRAM, place(path));
}

static int inet_socket(int family, int type) {
        int fd = socket(family, type | SOCK_CLOEXEC, 0);
        if (fd < 0 && errno == EAFNOSUPPORT)
                return -1;
        if (fd < 0)
                broken("socket");
        return fd;
}
static long inet_connect(int type, const char *address, unsigned long port) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
        int fd = inet_socket(AF_INET, type);

        in.sin_addr.s_addr = inet_addr(address);
        return fd < 0 ? -1 : connect(fd, (struct sockaddr *) &in, sizeof(in)) < 0 ? -1 : fd;
}
static long try_tcp(const char *address) {
        return inet_connect(SOCK_STREAM, address, fixture_number("tcp"));
}
static long try_tcp6(const char *a) {
        struct sockaddr_in6 in = {
                .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons((uint16_t) fixture_number("tcp6")),
        };
        int fd = inet_socket(AF_INET6, SOCK_STREAM);

        (void) a;
        return fd < 0 ? -1 : connect(fd, (struct sockaddr *) &in, sizeof(in));
}
/* To nobody: the first datagram brings the refusal, the second tells of it. */
static long try_udp(const char *address) {
        long fd = inet_connect(SOCK_DGRAM, address, fixture_number("udp"));

        if (fd < 0 || send((int) fd, "x", 1, 0) < 0)
                return -1;
        return send((int) fd, "x", 1, 0);
}
/* Only a route is looked for: nothing is sent. */
static long try_udp_route(const char *address) {
        return inet_connect(SOCK_DGRAM, address, 53);
}
static long try_fast_open(const char *address) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t) fixture_number("tcp"))};
        int fd = inet_socket(AF_INET, SOCK_STREAM);

        in.sin_addr.s_addr = inet_addr(address);
        return fd < 0 ? -1 : sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *) &in, sizeof(in));
}
static long try_bind(const char *port) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t) number(port))};
        int fd = inet_socket(AF_INET, SOCK_STREAM);

        return fd < 0 ? -1 : bind(fd, (struct sockaddr *) &in, sizeof(in));
}
static long try_interface(const char *flags) {
        struct ifreq request = {.ifr_name = "lo", .ifr_flags = (short) number(flags)};
        int fd = unix_socket(SOCK_DGRAM);
        return ioctl(fd, SIOCSIFFLAGS, &request);
}
static long try_address(const char *a) {
        struct {
                struct nlmsghdr header;
                struct ifaddrmsg message;
                struct rtattr attribute;
                uint32_t address;
        } request = {
                .header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_NEWADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
                .message = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1},
                .attribute = {.rta_len = 8, .rta_type = IFA_LOCAL},
                .address = htonl(0x7f090909),
        };
        struct {
                struct nlmsghdr header;
                struct nlmsgerr error;
                char rest[256];
        } answer;
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

        (void) a;
        if (fd < 0)
                return -1;
        if (send(fd, &request, sizeof(request), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < (ssize_t) sizeof(answer.header))
                broken("netlink");
        errno = -answer.error.error;
        return answer.error.error;
}
static long try_mark(const char *a) {
        int fd = inet_socket(AF_INET, SOCK_STREAM), on = 1;

        (void) a;
        return fd < 0 ? -1 : setsockopt(fd, SOL_SOCKET, SO_MARK, &on, sizeof(on));
}

#define FAMILY(n, w, a, e, i) \
        {.name = "socket-" n, .what = w, .try = try_socket, .argument = a, .error = e, .stops = STOP_SECCOMP, .optional = true, .ids = i}
#define PROTOCOL(n, w, a) \
        {.name = "socket-" n, .what = w, .try = try_socket, .argument = a, .error = EPROTONOSUPPORT, .stops = STOP_SECCOMP, \
         .optional = true, .ids = "T015 C038"}
#define PRIVILEGED(n, w, a, e) \
        {.name = "socket-" n, .what = w, .try = try_socket, .argument = a, .error = e, .stops = STOP_SECCOMP | STOP_PRIVILEGE, \
         .off = OFF_PRIVATE, .optional = true, .ids = "T015 N005"}
#define REACH(n, w, f, a, e, s, i) {.name = n, .what = w, .try = f, .argument = a, .error = e, .stops = s, .ids = i}

static const Attempt rows[] = {
        FAMILY("vsock", "the machine below this one", "40,1,0", EAFNOSUPPORT, "T015"),
        FAMILY("vsock-high-bits", "the same, with bits that a filter might compare", "0x100000028,1,0", EAFNOSUPPORT, "T015 C038"),
        FAMILY("alg", "the kernel's ciphers", "38,5,0", EAFNOSUPPORT, "T015"),
        FAMILY("bluetooth", "devices nearby", "31,3,1", EAFNOSUPPORT, "T015"),
        FAMILY("can", "the bus of a car", "29,3,1", EAFNOSUPPORT, "T015"),
        FAMILY("tipc", "a cluster", "30,1,0", EAFNOSUPPORT, "T015"),
        FAMILY("rds", "a cluster", "21,5,0", EAFNOSUPPORT, "T015"),
        FAMILY("smc", "TCP past a filter of TCP", "43,1,0", EAFNOSUPPORT, "T015"),
        FAMILY("qipcrtr", "a modem", "42,2,0", EAFNOSUPPORT, "T015"),
        FAMILY("kcm", "messages in the kernel", "41,2,0", EAFNOSUPPORT, "T015"),
        PRIVILEGED("packet", "whole frames", "17,3,0x0300", EAFNOSUPPORT),
        PRIVILEGED("key", "the kernel's IPsec", "15,3,2", EAFNOSUPPORT),
        PRIVILEGED("raw", "any protocol over IP", "2,3,255", EPROTONOSUPPORT),
        PRIVILEGED("raw6", "any protocol over IPv6", "10,3,255", EPROTONOSUPPORT),
        {.name = "socket-raw-icmp", .what = "echo requests by hand", .try = try_socket, .argument = "2,3,1", .error = EPERM,
         .stops = STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "T015 N005"},
        {.name = "socket-raw-tcp", .what = "TCP by hand", .try = try_socket, .argument = "2,3,6", .error = EPERM,
         .stops = STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "T015 N005"},
        PROTOCOL("mptcp", "TCP past a filter of TCP", "2,1,262"),
        PROTOCOL("sctp", "a protocol with many past holes", "2,1,132"),
        PROTOCOL("udplite", "UDP past a filter of UDP", "2,2,136"),
        PROTOCOL("netlink-audit", "the audit system", "16,3,9"),
        PROTOCOL("netlink-uevent", "what devices do", "16,3,15"),
        PROTOCOL("netlink-generic", "any subsystem", "16,3,16"),
        PROTOCOL("netlink-diag", "everybody's sockets", "16,3,4"),
        PROTOCOL("netlink-netfilter", "the packet filter", "16,3,12"),
        PROTOCOL("netlink-xfrm", "the kernel's IPsec", "16,3,6"),
        PROTOCOL("netlink-crypto", "the kernel's ciphers", "16,3,21"),
        PROTOCOL("netlink-connector", "who starts what", "16,3,11"),
        {.name = "socketpair-tipc", .what = "a cluster", .try = try_pair, .argument = "30", .error = EAFNOSUPPORT, .stops = STOP_SECCOMP,
         .optional = true, .ids = "T015"},
        REACH("abstract", "a service outside at an abstract name", try_abstract, "abstract", ECONNREFUSED, STOP_NETWORK | STOP_SCOPE,
              "C033 T013 N009"),
        REACH("abstract-datagram", "the same by datagram", try_abstract_datagram, "datagram", ECONNREFUSED, STOP_NETWORK | STOP_SCOPE,
              "C033 T013 N009"),
        REACH("path-socket", "a service outside at a path", try_path, "private/socket", ENOENT, STOP_NAMESPACES, "C064 C065 C066"),
        REACH("path-socket-datagram", "the same by datagram", try_path_datagram, "private/datagram", ENOENT, STOP_NAMESPACES, "C064 C065 C066"),
        REACH("path-socket-denied", "a service at a path denied inside of a grant", try_path, "work/denied/socket", EACCES, STOP_COVER, "C065"),
        REACH("tcp-loopback", "a service on the host's loopback", try_tcp, "127.0.0.1", ECONNREFUSED, STOP_NETWORK | STOP_SECCOMP,
              "N002 C043"),
        REACH("tcp-loopback-other", "the same at another of its addresses", try_tcp, "127.9.9.9", ECONNREFUSED,
              STOP_NETWORK | STOP_SECCOMP, "N002 C043"),
        REACH("tcp-any", "the same by the address of none", try_tcp, "0.0.0.0", ECONNREFUSED, STOP_NETWORK | STOP_SECCOMP, "N002"),
        REACH("tcp6-loopback", "the same on IPv6", try_tcp6, NULL, ECONNREFUSED, STOP_NETWORK | STOP_SECCOMP, "N002"),
        REACH("tcp-fast-open", "data before a connection", try_fast_open, "127.0.0.1", EOPNOTSUPP, STOP_NETWORK | STOP_SECCOMP, "N003"),
        REACH("udp-loopback", "UDP on the host's loopback", try_udp, "127.0.0.1", ECONNREFUSED, STOP_NETWORK | STOP_SECCOMP, "N003"),
        {.name = "udp-outside", .what = "a route off the host", .try = try_udp_route, .argument = "192.0.2.1", .error = ENETUNREACH,
         .stops = STOP_NETWORK | STOP_SECCOMP, .optional = true, .ids = "N003 N004 N007"},
        {.name = "bind-privileged", .what = "a port that is trusted", .try = try_bind, .argument = "80", .error = EACCES,
         .stops = STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "N008"},
        {.name = "interface-up", .what = "interfaces changed", .try = try_interface, .argument = "1", .error = EPERM, .stops = STOP_PRIVILEGE,
         .off = OFF_PRIVATE, .ids = "N007"},
        {.name = "address", .what = "another address", .try = try_address, .error = EPERM, .stops = STOP_PRIVILEGE, .off = OFF_PRIVATE,
         .ids = "N007"},
        {.name = "socket-mark", .what = "packets that routing trusts", .try = try_mark, .error = EPERM, .stops = STOP_PRIVILEGE,
         .off = OFF_PRIVATE, .ids = "N007"},
};

const AttemptTable escape_sockets = {rows, sizeof(rows) / sizeof(rows[0])};
