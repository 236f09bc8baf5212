/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "basic/parse.h"
#include "basic/text.h"
#include "broker/hosts.h"

#define LABEL_MAX 63U /* RFC 1035, section 2.3.4 */

static int refuse(const char **ret_problem, const char *problem) {
        if (ret_problem)
                *ret_problem = problem;
        return -EBADMSG;
}

static bool is_host_char(char c) {
        return ascii_alpha(c) || ascii_digit(c) || c == '-' || c == '_' || c == '.';
}

/* What inet_aton(3), and so a resolver, may read as an IPv4 address in octal, hexadecimal or short form. */
static bool reads_as_number(const char *name) {
        const char *dot = strrchr(name, '.'), *label = dot ? dot + 1 : name;

        return (label[0] == '0' && label[1] == 'x') || label[strspn(label, "0123456789")] == 0;
}

/* Four octets as inet_ntop(3) writes them. */
static bool is_canonical_ipv4(const char *name) {
        for (unsigned i = 0; i < 4; i++) {
                size_t n = strspn(name, "0123456789");
                uint64_t octet;

                if ((n > 1 && *name == '0') || parse_u64_n(name, n, 255, &octet) < 0 || name[n] != (i < 3 ? '.' : 0))
                        return false;
                name += n + 1;
        }
        return true;
}

static int check_labels(const char *name, const char **ret_problem) {
        for (;;) {
                size_t n = strcspn(name, ".");
                if (n == 0)
                        return refuse(ret_problem, "the host has an empty label");
                if (n > LABEL_MAX)
                        return refuse(ret_problem, "the host has a label of more than 63 bytes");
                if (name[n] == 0)
                        return 0;
                name += n + 1;
        }
}

static int parse_name(Slice text, Host *ret, const char **ret_problem) {
        Host host = {.kind = HOST_NAME};

        if (text.size == 0)
                return refuse(ret_problem, "the host is empty");
        for (size_t i = 0; i < text.size; i++)
                if ((unsigned char) text.data[i] >= 0x80)
                        return refuse(ret_problem, "the host is not ASCII; a name in another script has an xn-- form");
        for (size_t i = 0; i < text.size; i++)
                if (!is_host_char(text.data[i]))
                        return refuse(ret_problem, "the host holds a character other than letters, digits, '-', '_' and '.'");
        /* A name is quoted in advice to run a command with it. */
        if (*text.data == '-')
                return refuse(ret_problem, "the host begins with '-'");
        if (text.size > 1 && text.data[text.size - 1] == '.')
                text.size--;
        if (text.size > HOST_NAME_MAX_BYTES)
                return refuse(ret_problem, "the host is longer than 253 bytes");

        for (size_t i = 0; i < text.size; i++)
                host.name[i] = ascii_lower(text.data[i]);
        int r = check_labels(host.name, ret_problem);
        if (r < 0)
                return r;
        if (reads_as_number(host.name)) {
                if (!is_canonical_ipv4(host.name))
                        return refuse(ret_problem, "the host reads as a number but is not a plain IPv4 address");
                host.kind = HOST_IPV4;
        }
        *ret = host;
        return 0;
}

static int parse_ipv6(Slice text, Host *ret, const char **ret_problem) {
        Host host = {.kind = HOST_IPV6};
        char copy[INET6_ADDRSTRLEN];
        struct in6_addr address;

        if (text.size >= sizeof(copy) || memchr(text.data, 0, text.size))
                return refuse(ret_problem, "the host is not an IPv6 address");
        memcpy(copy, text.data, text.size);
        copy[text.size] = 0;
        if (inet_pton(AF_INET6, copy, &address) != 1 || !inet_ntop(AF_INET6, &address, host.name, sizeof(host.name)))
                return refuse(ret_problem, "the host is not an IPv6 address");
        *ret = host;
        return 0;
}

static int parse_port_digits(Slice text, uint16_t *ret, const char **ret_problem) {
        uint64_t port;

        if (text.size == 0)
                return refuse(ret_problem, "the port is missing");
        if (text.size > 5 || (text.size > 1 && *text.data == '0') || parse_u64_n(text.data, text.size, UINT32_MAX, &port) < 0)
                return refuse(ret_problem, "the port is malformed");
        if (port == 0 || port > UINT16_MAX) {
                (void) refuse(ret_problem, "the port is not between 1 and 65535");
                return -ERANGE;
        }
        *ret = (uint16_t) port;
        return 0;
}

int host_parse_authority(Slice text, uint16_t default_port, Host *ret, uint16_t *ret_port, const char **ret_problem) {
        bool bracketed = text.size > 0 && *text.data == '[';
        const char *close = bracketed ? memchr(text.data, ']', text.size) : NULL;
        uint16_t port = default_port;
        Slice name, rest;
        Host host;
        int r;

        if (bracketed && !close)
                return refuse(ret_problem, "the host has an opening bracket without a closing one");
        const char *from = close ? close + 1 : text.data, *end = text.data + text.size;
        const char *colon = text.size > 0 ? memchr(from, ':', (size_t) (end - from)) : NULL;
        if (close && from != end && colon != from)
                return refuse(ret_problem, "something other than a port follows the host's closing bracket");

        name = (Slice){text.data, colon ? (size_t) (colon - text.data) : text.size};
        r = close ? parse_ipv6((Slice){name.data + 1, (size_t) (close - name.data) - 1}, &host, ret_problem)
                  : parse_name(name, &host, ret_problem);
        if (r < 0)
                return r;
        if (colon) {
                rest = (Slice){colon + 1, (size_t) (end - colon) - 1};
                r = parse_port_digits(rest, &port, ret_problem);
                if (r < 0)
                        return r;
        } else if (default_port == 0)
                return refuse(ret_problem, "the port is missing");
        *ret = host;
        *ret_port = port;
        return 0;
}

int host_parse(const char *text, Host *ret, const char **ret_problem) {
        size_t size = strlen(text);

        if (size >= 2 && text[0] == '[' && text[size - 1] == ']')
                return parse_ipv6((Slice){text + 1, size - 2}, ret, ret_problem);
        if (strchr(text, '/') || (strchr(text, ':') && strchr(text, ':') == strrchr(text, ':')))
                return refuse(ret_problem, "the host has to stand alone, without a scheme, port or path");
        if (strchr(text, ':'))
                return parse_ipv6((Slice){text, size}, ret, ret_problem);
        return parse_name((Slice){text, size}, ret, ret_problem);
}

int host_pattern_parse(const char *text, HostPattern *ret, const char **ret_problem) {
        HostPattern pattern = {.kind = PATTERN_EXACT};
        const char *below = startswith(text, "*.");
        int r;

        if (streq(text, "*")) {
                *ret = (HostPattern){.kind = PATTERN_ANY};
                return 0;
        }
        if (strchr(below ?: text, '*'))
                return refuse(ret_problem, "a '*' may only stand alone or as the whole first label, as in *.example.com");
        r = host_parse(below ?: text, &pattern.host, ret_problem);
        if (r < 0)
                return r;
        if (below) {
                if (pattern.host.kind != HOST_NAME)
                        return refuse(ret_problem, "a '*' cannot stand before an address");
                if (!strchr(pattern.host.name, '.'))
                        return refuse(ret_problem, "a '*' before a single label would cover a whole top-level domain");
                pattern.kind = PATTERN_BELOW;
        }
        *ret = pattern;
        return 0;
}

bool host_pattern_matches(const HostPattern *pattern, const Host *host) {
        switch (pattern->kind) {
        case PATTERN_ANY:
                return true;
        case PATTERN_EXACT:
                return pattern->host.kind == host->kind && streq(pattern->host.name, host->name);
        case PATTERN_BELOW: {
                const char *tail = host->kind == HOST_NAME ? endswith(host->name, pattern->host.name) : NULL;
                return tail && tail > host->name + 1 && tail[-1] == '.';
        }
        default:
                return false;
        }
}

bool host_patterns_match(const HostPattern *list, size_t n, const Host *host) {
        for (size_t i = 0; i < n; i++)
                if (host_pattern_matches(&list[i], host))
                        return true;
        return false;
}

const char *host_pattern_format(const HostPattern *pattern, char *buffer) {
        if (pattern->kind == PATTERN_ANY)
                strcpy(buffer, "*");
        else
                (void) snprintf(buffer, HOST_NAME_MAX_BYTES + 3, "%s%s", pattern->kind == PATTERN_BELOW ? "*." : "",
                                pattern->host.name);
        return buffer;
}
