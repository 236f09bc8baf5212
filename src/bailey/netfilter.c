/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <unistd.h>

#include "bailey/netfilter.h"
#include "basic/fd.h"
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

#define PROGRAM "bailey-netfilter"

/* Beside this program, as in a build tree, or where it is installed: fixed places, whatever the environment says. -ENOENT. */
static int open_program(void) {
        char path[PATH_MAX];

        ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
        const char *slash = n > 0 && n < (ssize_t) sizeof(path) ? memrchr(path, '/', (size_t) n) : NULL;
        if (slash && (size_t) (slash - path) + sizeof("/" PROGRAM) <= sizeof(path)) {
                (void) snprintf(path + (slash - path), sizeof("/" PROGRAM), "/" PROGRAM);
                int fd = open(path, O_PATH | O_CLOEXEC);
                if (fd >= 0)
                        return fd;
        }
        int fd = open(ERRAND_LIBEXEC_DIR "/" PROGRAM, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int netfilter_install(const Network *n, Failure *f) {
        static const char *const arguments[] = {PROGRAM, NULL};
        char said[512] = "";
        int r = 0;

        _cleanup_close_ int program = open_program();
        if (program < 0)
                return failure_set(f, STAGE_NETFILTER, program, PROGRAM " is neither beside bailey nor in " ERRAND_LIBEXEC_DIR);
        /* A kernel may have filters and nothing to reject with. Each try is one transaction. */
        for (int reject = 1; reject >= 0; reject--) {
                _cleanup_free_ char *rules = NULL;

                r = netfilter_rules(n, reject, &rules);
                if (r >= 0)
                        r = program_run(program, arguments, rules, CAP_NET_ADMIN, said, sizeof(said));
                if (r == 0)
                        return 0;
                if (r < 0)
                        return failure_set(f, STAGE_NETFILTER, r, PROGRAM);
        }
        said[strcspn(said, "\n")] = 0;
        return failure_set(f, STAGE_NETFILTER, 0, PROGRAM " ended with status %d: %s", r,
                           *said ? said : r == EXIT_NO_PROGRAM ? "it cannot be executed" : "it says nothing");
}
