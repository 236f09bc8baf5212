/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/network-use.h"
#include "basic/parse.h"
#include "basic/text.h"

/* From here on the kernel chooses ports by itself (net.ipv4.ip_local_port_range, as it is by default). */
#define PORT_CHOSEN 32768U

void network_use_done(NetworkUse *u) {
        free(u->connect);
        free(u->bind);
        strv_free(u->addresses);
        *u = (NetworkUse){};
}

static bool port_of(const Access *a, uint16_t *ret) {
        const char *colon = strrchr(a->name, ':');
        return colon && parse_port(colon + 1, ret) >= 0;
}

/* 0.0.0.0 and :: are the own host when connected to, and every address of it when bound. */
static bool is_loopback(const Access *a) {
        bool any = startswith(a->name, "0.0.0.0:") || startswith(a->name, "[::]:");
        return startswith(a->name, "127.") || startswith(a->name, "[::1]:") || startswith(a->name, "[::ffff:127.") ||
               (any && !(a->operations & ACCESSED_BIND));
}

static bool bound_by_itself(const Trace *t, uint16_t port) {
        for (size_t i = 0; i < t->accesses.n; i++) {
                const Access *a = &t->accesses.items[i];
                uint16_t p;

                if (a->kind == ACCESS_ADDRESS && (a->operations & ACCESSED_BIND) && port_of(a, &p) && p == port)
                        return true;
        }
        return false;
}

static int add_port(uint16_t **ports, size_t *n, uint16_t port) {
        size_t at = 0;

        while (at < *n && (*ports)[at] < port)
                at++;
        if (at < *n && (*ports)[at] == port)
                return 0;
        uint16_t *grown = reallocarray(*ports, *n + 1, sizeof(uint16_t));
        if (!grown)
                return -ENOMEM;
        memmove(grown + at + 1, grown + at, (*n - at) * sizeof(uint16_t));
        grown[at] = port;
        *ports = grown;
        ++*n;
        return 0;
}

int network_use_add(NetworkUse *u, const Trace *t, const Access *a, const char **ret_reason) {
        const unsigned tcp = a->operations & (ACCESSED_CONNECT | ACCESSED_BIND);
        bool loopback = is_loopback(a), own;
        uint16_t port;

        *ret_reason = NULL;
        if (!port_of(a, &port)) {
                *ret_reason = "it has no port";
                return 0;
        }
        own = loopback && ((a->operations & ACCESSED_BIND) || bound_by_itself(t, port));
        if (tcp && loopback && !own && port >= PORT_CHOSEN) {
                *ret_reason = "a port of the kernel's choice, another the next time";
                return 0;
        }
        if (!tcp) {
                if (!loopback)
                        *ret_reason = "a datagram: let out where a policy allows any egress, and nowhere else";
                return 0;
        }
        u->beyond |= !own;
        int r = tcp & ACCESSED_CONNECT ? add_port(&u->connect, &u->n_connect, port) : 0;
        if (r >= 0 && (tcp & ACCESSED_BIND))
                r = add_port(&u->bind, &u->n_bind, port);
        if (r < 0)
                return r;
        char *clean = string_escape_control(a->name);
        return clean ? strv_consume(&u->addresses, clean) : -ENOMEM;
}

static void print_ports(FILE *f, const char *name, const uint16_t *ports, size_t n, const char *quote) {
        if (n == 0)
                return;
        fprintf(f, "%s = [", name);
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%s%u%s", i > 0 ? ", " : "", quote, ports[i], quote);
        fputs("]\n", f);
}

void network_use_print(const NetworkUse *u, FILE *f) {
        if (!u->beyond)
                return;
        fputs("\n# This gives up a network of its own: UDP, QUIC and DNS are not restricted then, and ports are open on every host. Seen:\n", f);
        for (char **s = u->addresses; s && *s; s++)
                fprintf(f, "#   %s\n", *s);
        fputs("[network]\n", f);
        print_ports(f, "egress_allow", u->connect, u->n_connect, "\"");
        print_ports(f, "bind_ports", u->bind, u->n_bind, "");
}
