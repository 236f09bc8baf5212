/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <linux/capability.h>
#include <unistd.h>

#include "bailey/netfilter.h"
#include "basic/program.h"

int netfilter_rules(const Network *n, bool reject, char **ret) {
        char gateway[INET_ADDRSTRLEN], way[128] = "";

        (void) inet_ntop(AF_INET, &n->gateway, gateway, sizeof(gateway));
        if (n->mode == NETWORK_PROXY && !n->denied) {
                /* pasta is told to forward neither; these hold should it do so all the same. The neighbour discovery of the gateway
                 * must pass. */
                int k = asprintf(ret,
                                 "table inet bailey {\n"
                                 "chain out { type filter hook output priority -300; policy accept;\n"
                                 "oifname \"lo\" accept\n"
                                 "%s%s%s"
                                 "ip daddr { 127.0.0.0/8, %s } drop\n"
                                 "ip6 daddr { ::1, " NETWORK_GATEWAY_IPV6 " } meta l4proto { tcp, udp } drop\n"
                                 "}\n}\n",
                                 reject ? "ip daddr { 127.0.0.0/8, " : "", reject ? gateway : "",
                                 reject ? " } meta l4proto tcp reject with tcp reset\n" : "", gateway);
                return k < 0 ? -ENOMEM : 0;
        }
        if (n->mode == NETWORK_EGRESS_PROXY)
                (void) snprintf(way, sizeof(way), "ip daddr %s tcp dport %u accept\n", gateway, n->proxy_port);
        /* Everything that is not let through is dropped, of whatever family and protocol. A reset, which does not leave the machine
         * that it is about, spares programs from waiting. */
        int k = asprintf(ret,
                         "table inet bailey {\n"
                         "chain out { type filter hook output priority -300; policy drop;\n"
                         "oifname \"lo\" accept\n"
                         "%s%s}\n"
                         "chain in { type filter hook input priority -300; policy drop;\n"
                         "iifname \"lo\" accept\n"
                         "%s%s%s}\n"
                         "chain through { type filter hook forward priority -300; policy drop; }\n"
                         "}\n",
                         way, reject ? "meta nfproto ipv4 meta l4proto tcp reject with tcp reset\n" : "",
                         *way ? "ip saddr " : "", *way ? gateway : "", *way ? " tcp flags & (syn | ack) != syn accept\n" : "");
        return k < 0 ? -ENOMEM : 0;
}

/* Fixed places, whatever the environment says. */
static const char *const places[] = {"/usr/sbin/nft", "/usr/bin/nft"};

static const char *find_program(void) {
        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (access(places[i], X_OK) == 0)
                        return places[i];
        return NULL;
}

int netfilter_install(const Network *n, Failure *f) {
        const char *const arguments[] = {find_program(), "-f", "-", NULL};
        char said[512];
        int r = 0;

        if (!arguments[0])
                return failure_set(f, STAGE_NETFILTER, 0, "nft is not in /usr/sbin and /usr/bin; install nftables");
        /* A kernel may have filters and nothing to reject with. Each try is one transaction. */
        for (int reject = 1; reject >= 0; reject--) {
                _cleanup_free_ char *rules = NULL;

                r = netfilter_rules(n, reject, &rules);
                if (r >= 0)
                        r = program_run(arguments, rules, CAP_NET_ADMIN, said, sizeof(said));
                if (r == 0)
                        return 0;
                if (r < 0)
                        return failure_set(f, STAGE_NETFILTER, r, "%s", arguments[0]);
        }
        return failure_set(f, STAGE_NETFILTER, 0, "%s ended with status %d: %.*s", arguments[0], r, (int) strcspn(said, "\n"), said);
}
