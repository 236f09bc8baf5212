/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/netfilter.h"
#include "basic/fd.h"
#include "basic/io.h"

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
#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#elif defined(__riscv)
#define TRIPLET "riscv64-linux-gnu"
#endif

static const char *const places[] = {
        "/usr/lib/" TRIPLET "/libnftables.so.1",
        "/usr/lib64/libnftables.so.1",
        "/usr/lib/libnftables.so.1",
};

/* libnftables(3): a context, its errors in a buffer, and commands as text. Named here, as bailey is built without it. */
struct nft_ctx;

typedef struct Library {
        struct nft_ctx *(*make)(uint32_t flags); /* 0: as usual */
        int (*buffer_error)(struct nft_ctx *context);
        const char *(*error)(struct nft_ctx *context);
        int (*run)(struct nft_ctx *context, const char *commands);
} Library;

static bool find(void *handle, const char *name, void *ret) {
        void *symbol = dlsym(handle, name);
        memcpy(ret, &symbol, sizeof(symbol));
        return symbol;
}

static bool load(Library *l) {
        void *handle = NULL;

        for (size_t i = 0; i < ELEMENTSOF(places) && !handle; i++)
                handle = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        return handle && find(handle, "nft_ctx_new", &l->make) && find(handle, "nft_ctx_buffer_error", &l->buffer_error) &&
               find(handle, "nft_ctx_get_error_buffer", &l->error) && find(handle, "nft_run_cmd_from_buffer", &l->run);
}

/* What went wrong, as one line; empty: nothing. */
static void install(const Network *n, char ret[256]) {
        struct nft_ctx *context;
        Library l;

        (void) snprintf(ret, 256, "%s", "libnftables cannot be loaded; install libnftables1");
        if (!load(&l))
                return;
        (void) snprintf(ret, 256, "%s", "libnftables cannot be used");
        context = l.make(0);
        if (!context || l.buffer_error(context) < 0)
                return;
        /* A kernel may have filters and nothing to reject with. Each try is one transaction. */
        for (int reject = 1; reject >= 0; reject--) {
                _cleanup_free_ char *rules = NULL;

                if (netfilter_rules(n, reject, &rules) < 0)
                        return;
                if (l.run(context, rules) == 0) {
                        ret[0] = 0;
                        return;
                }
        }
        (void) snprintf(ret, 256, "the kernel refused it: %.*s", (int) strcspn(l.error(context), "\n"), l.error(context));
}

int netfilter_install(const Network *n, Failure *f) {
        char text[256] = "";
        int pair[2], status;

        if (pipe2(pair, O_CLOEXEC) < 0)
                return failure_set(f, STAGE_NETFILTER, errno, "pipe");
        _cleanup_close_ int ours = pair[0];
        pid_t pid = fork();
        if (pid == 0) {
                install(n, text);
                _exit(write_all(pair[1], text, strlen(text)) < 0 || *text ? EXIT_FAILURE : EXIT_SUCCESS);
        }
        safe_close(pair[1]);
        if (pid < 0)
                return failure_set(f, STAGE_NETFILTER, errno, "fork");
        ssize_t size = read_all(ours, text, sizeof(text) - 1);
        text[MAX(size, 0)] = 0;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return failure_set(f, STAGE_NETFILTER, errno, "waitpid");
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
                return 0;
        return failure_set(f, STAGE_NETFILTER, 0, "%s", *text ? text : "the process that loads libnftables ended");
}
