/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>

#include "bailey/network.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "basic/text.h"

#define RESOLVER_FILE "/etc/resolv.conf"
#define RESOLVER_FILE_SIZE_MAX (64U * 1024U)

const char *network_mode_to_string(NetworkMode m) {
        static const char *const names[_NETWORK_MODE_MAX] = {
                [NETWORK_ISOLATED] = "isolated",   [NETWORK_BROKER] = "broker",
                [NETWORK_LANDLOCK] = "landlock-only", [NETWORK_PROXY] = "proxy-net",
                [NETWORK_EGRESS_PROXY] = "egress-proxy",
        };
        return m >= 0 && m < _NETWORK_MODE_MAX ? names[m] : NULL;
}

void network_done(Network *n) {
        free(n->connect_ports);
        free(n->resolver_file_path);
        free(n->resolver_file);
        strv_free(n->paths);
        *n = (Network){};
}

bool network_proxy_address_valid(struct in_addr address) {
        uint32_t a = ntohl(address.s_addr);

        /* 0.0.0.0/8, loopback, all from multicast on, and the ends of a network of 8 bits. */
        return a >> 24 != 0 && a >> 24 != 127 && a >> 28 < 14 && (a & 0xffffff) != 0 && (a & 0xffffff) != 0xffffff;
}

/* The policy knows them as "PORT" or "HOST:PORT"; the host is advisory. */
static int choose_ports(const Policy *p, Network *n) {
        size_t size = strv_length(p->egress_hosts);

        n->connect_any = p->egress_allow && size == 0;
        n->bind_ports = p->bind_ports;
        n->n_bind_ports = p->n_bind_ports;
        n->denied = !p->egress_allow && p->n_bind_ports == 0;
        if (!p->egress_allow || size == 0)
                return 0;
        n->connect_ports = calloc(size, sizeof(uint16_t));
        if (!n->connect_ports)
                return -ENOMEM;
        for (size_t i = 0; i < size; i++) {
                const char *colon = strrchr(p->egress_hosts[i], ':');
                uint16_t port;

                if (parse_port(colon ? colon + 1 : p->egress_hosts[i], &port) < 0)
                        return -EINVAL; /* was checked when the file was read */
                n->connect_ports[n->n_connect_ports++] = port;
        }
        return 0;
}

/* ---- addresses ---- */

static bool host_uses(uint32_t network, const struct ifaddrs *all) {
        for (; all; all = all->ifa_next) {
                struct sockaddr_in a;

                if (!all->ifa_addr || all->ifa_addr->sa_family != AF_INET)
                        continue;
                memcpy(&a, all->ifa_addr, sizeof(a));
                if ((ntohl(a.sin_addr.s_addr) & 0xffffff00) == network)
                        return true;
        }
        return false;
}

/* A network that the host itself is not in: what is seen inside shall not be its address, nor hide its neighbours. */
static int choose_addresses(Network *n) {
        static const uint32_t networks[] = {0x0a000200, 0x0ad34200, 0xac1ff200, 0xc0a8f200};
        struct ifaddrs *all = NULL;
        size_t i = 0;

        if (getifaddrs(&all) < 0)
                return -errno;
        while (i + 1 < ELEMENTSOF(networks) && host_uses(networks[i], all))
                i++;
        freeifaddrs(all);
        n->address.s_addr = htonl(networks[i] + 15);
        n->gateway.s_addr = htonl(networks[i] + 2);
        n->resolver.s_addr = htonl(networks[i] + 3);
        n->prefix = 24;
        return 0;
}

/* The smallest network that has a second address beside the proxy's. */
static void choose_addresses_beside(Network *n) {
        uint32_t a = ntohl(n->proxy_address.s_addr);

        for (n->prefix = 30; n->prefix > 8; n->prefix--) {
                uint32_t mask = (1U << (32 - n->prefix)) - 1, host = a & mask;
                if (host == 0 || host == mask)
                        continue;
                n->address.s_addr = htonl(host + 1 < mask ? a + 1 : a - 1);
                break;
        }
        n->gateway = n->proxy_address;
}

/* A line of /proc/net/ipv6_route: destination, its length in hex, …, flags, interface. */
static bool host_has_ipv6(void) {
        static const char any[] = "00000000000000000000000000000000 00 ";
        _cleanup_free_ char *text = NULL;

        if (read_file_full("/proc/net/ipv6_route", 1024 * 1024, &text, NULL) < 0)
                return false;
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                const char *interface = strrchr(line, ' ');
                if (startswith(line, any) && interface && !streq(interface + 1, "lo"))
                        return true;
        }
        return false;
}

/* ---- names ---- */

/* In a namespace of its own the host's resolver may be out of reach, as is one on loopback: pasta passes on what is sent to an address
 * of ours. Search domains and options stay. */
static int write_resolver_file(Network *n) {
        _cleanup_free_ char *host = NULL;
        char address[INET_ADDRSTRLEN];

        if (read_file_full(n->resolver_file_path, RESOLVER_FILE_SIZE_MAX, &host, NULL) < 0)
                host = strdup("");
        if (!host || asprintf(&n->resolver_file, "nameserver %s\n", inet_ntop(AF_INET, &n->resolver, address, sizeof(address))) < 0) {
                n->resolver_file = NULL;
                return -ENOMEM;
        }
        for (char *save = NULL, *line = strtok_r(host, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (!startswith(line, "search ") && !startswith(line, "options ") && !startswith(line, "domain "))
                        continue;
                if (string_append(&n->resolver_file, "%s\n", line) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int choose_resolver(Network *n) {
        _cleanup_(resolved_path_done) ResolvedPath to = {};

        int r = path_resolve(RESOLVER_FILE, &to);
        if (r < 0 || to.error < 0)
                return r;
        n->resolver_file_path = strdup(to.real);
        if (!n->resolver_file_path)
                return -ENOMEM;
        return n->mode == NETWORK_PROXY ? write_resolver_file(n) : strv_extend(&n->paths, to.real);
}

/* A fresh /sys comes with a network namespace of one's own. In the host's, programs find what it says of the interfaces, which can be
 * learned in other ways as well, and nothing of the machine. */
static int choose_interfaces(Network *n) {
        static const char place[] = "/sys/class/net";
        DIR *d = opendir(place);
        int r = d ? strv_extend(&n->paths, place) : 0;

        for (const struct dirent *e; r >= 0 && d && (e = readdir(d));) {
                _cleanup_(resolved_path_done) ResolvedPath to = {};
                _cleanup_free_ char *path = NULL;

                if (e->d_name[0] == '.')
                        continue;
                r = asprintf(&path, "%s/%s", place, e->d_name) < 0 ? -ENOMEM : path_resolve(path, &to);
                if (r >= 0 && to.error == 0 && to.n_links > 0)
                        r = strv_extend(&n->paths, to.real);
        }
        if (d)
                closedir(d);
        return r;
}

/* ---- choosing ---- */

static NetworkMode choose_mode(const Network *n, const NetworkRequest *request) {
        if (request->brokered)
                return NETWORK_BROKER;
        if (request->proxy_port)
                return NETWORK_EGRESS_PROXY;
        if (request->proxy)
                return NETWORK_PROXY;
        /* A port can be bound for others only where all can be reached; where no rule can deny that, what is denied stays so. */
        bool reachable = n->connect_any || n->n_connect_ports > 0 || request->landlock_abi >= LANDLOCK_ABI_PORTS;
        return n->denied || !reachable ? NETWORK_ISOLATED : NETWORK_LANDLOCK;
}

int network_choose(const Policy *p, const NetworkRequest *request, Network *ret) {
        _cleanup_(network_done) Network n = {.proxy_address = request->proxy_address, .proxy_port = request->proxy_port};

        int r = choose_ports(p, &n);
        if (r < 0)
                return r;
        n.mode = choose_mode(&n, request);
        if (n.mode == NETWORK_PROXY) {
                r = choose_addresses(&n);
                n.ipv6 = !n.denied && host_has_ipv6();
        } else if (n.mode == NETWORK_EGRESS_PROXY)
                choose_addresses_beside(&n);
        if (r >= 0 && (n.mode == NETWORK_PROXY || n.mode == NETWORK_LANDLOCK))
                r = choose_resolver(&n);
        if (r >= 0 && n.mode == NETWORK_LANDLOCK)
                r = choose_interfaces(&n);
        if (r < 0)
                return r;
        *ret = n;
        n = (Network){};
        return 0;
}
