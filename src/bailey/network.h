/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How a run is connected, chosen from the policy, the command line and what the host can do. */

#include <netinet/in.h>

#include "bailey/policy.h"

typedef enum NetworkMode {
        NETWORK_ISOLATED,     /* own namespace, loopback only */
        NETWORK_BROKER,       /* the same, and one listener handed to a broker */
        NETWORK_LANDLOCK,     /* the host's namespace; Landlock holds TCP ports, and nothing holds the rest */
        NETWORK_PROXY,        /* own namespace, connected by pasta; Landlock holds TCP ports */
        NETWORK_EGRESS_PROXY, /* the same, and the packet filter lets out TCP to one address and port alone */
        _NETWORK_MODE_MAX,
        _NETWORK_MODE_INVALID = -EINVAL,
} NetworkMode;

const char *network_mode_to_string(NetworkMode m); /* "landlock-only" */

typedef struct Network {
        NetworkMode mode;
        bool denied;      /* the policy lets nothing out and binds nothing: under NETWORK_PROXY nothing leaves the namespace */
        bool connect_any; /* no TCP port is refused */
        uint16_t *connect_ports;
        size_t n_connect_ports;
        const uint16_t *bind_ports; /* borrowed from the policy */
        size_t n_bind_ports;

        /* Of the namespace that pasta connects, network byte order. */
        struct in_addr address, gateway, resolver;
        unsigned prefix;
        struct in_addr proxy_address; /* NETWORK_EGRESS_PROXY: there the host's loopback is mapped; it is the gateway, too */
        uint16_t proxy_port;
        bool ipv6;                /* the host has a default route for it */
        char *resolver_file_path; /* real path of /etc/resolv.conf, NULL: there is none */
        char *resolver_file;      /* what it says inside, NULL: the host's own */
        char **paths;             /* what else the host's network is found by, to be readable */
} Network;

void network_done(Network *n);

typedef struct NetworkRequest {
        bool brokered;
        bool proxy;                   /* --proxy-net, and pasta is there */
        struct in_addr proxy_address; /* --egress-proxy */
        uint16_t proxy_port;          /* 0: not given */
        int landlock_abi;
} NetworkRequest;

int network_choose(const Policy *p, const NetworkRequest *request, Network *ret);

/* True where another namespace's traffic goes through pasta. */
static inline bool network_has_pasta(const Network *n) {
        return n->mode == NETWORK_PROXY || n->mode == NETWORK_EGRESS_PROXY;
}

/* True where Landlock's rights over TCP ports are to be handled. Elsewhere they would break the own loopback, where nothing has
 * to be refused. */
static inline bool network_has_ports(const Network *n) {
        return n->mode == NETWORK_LANDLOCK || (n->mode == NETWORK_PROXY && !n->denied);
}

/* The first Landlock ABI with rights over TCP ports (Linux 6.7). */
#define LANDLOCK_ABI_PORTS 4

/* An address that --egress-proxy can map the host's loopback at. */
bool network_proxy_address_valid(struct in_addr address);

/* The router of a namespace with IPv6, as seen from inside. */
#define NETWORK_GATEWAY_IPV6 "fe80::1"
