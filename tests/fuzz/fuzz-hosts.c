/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "basic/text.h"
#include "broker/hosts.h"
#include "shared/addresses.h"
#include "fuzz.h"

static void check_host(const Host *host) {
        size_t n = strlen(host->name);
        Host again;

        HOLDS(n > 0 && n <= HOST_NAME_MAX_BYTES);
        HOLDS(strspn(host->name, host->kind == HOST_IPV6 ? "0123456789abcdef:." : "abcdefghijklmnopqrstuvwxyz0123456789-_.") == n);
        HOLDS(host->name[0] != '.' || host->kind == HOST_IPV6);
        HOLDS(host_parse(host->name, &again, NULL) == 0 && again.kind == host->kind && streq(again.name, host->name));
        if (host->kind != HOST_NAME) {
                Address a;
                char text[INET6_ADDRSTRLEN];
                HOLDS(address_parse(host->name, &a) == 0 && streq(address_format(&a, text), host->name));
        } else {
                /* No resolver may take a name for an address. */
                struct in_addr in;
                HOLDS(inet_aton(host->name, &in) == 0);
        }
}

static void check_authority(Slice text, uint16_t default_port) {
        const char *problem = NULL;
        char written[HOST_NAME_MAX_BYTES + 10];
        Host host, again;
        uint16_t port, port_again;

        int r = host_parse_authority(text, default_port, &host, &port, &problem);
        HOLDS(r == 0 || r == -EBADMSG || r == -ERANGE);
        HOLDS((r < 0) == (problem != NULL));
        if (r < 0)
                return;
        HOLDS(port > 0);
        check_host(&host);
        (void) snprintf(written, sizeof(written), host.kind == HOST_IPV6 ? "[%s]:%u" : "%s:%u", host.name, port);
        HOLDS(host_parse_authority((Slice){written, strlen(written)}, 0, &again, &port_again, NULL) == 0);
        HOLDS(port_again == port && again.kind == host.kind && streq(again.name, host.name));
}

static void check_pattern(const char *text) {
        const char *problem = NULL;
        char buffer[HOST_NAME_MAX_BYTES + 3], below[HOST_NAME_MAX_BYTES + 3];
        HostPattern pattern, again;
        Host host;

        int r = host_pattern_parse(text, &pattern, &problem);
        HOLDS(r == 0 || r == -EBADMSG);
        HOLDS((r < 0) == (problem != NULL));
        if (r < 0)
                return;
        HOLDS(host_pattern_parse(host_pattern_format(&pattern, buffer), &again, NULL) == 0);
        HOLDS(again.kind == pattern.kind && streq(again.host.name, pattern.host.name));
        if (pattern.kind == PATTERN_ANY)
                return;
        check_host(&pattern.host);
        HOLDS(host_pattern_matches(&pattern, &pattern.host) == (pattern.kind == PATTERN_EXACT));
        /* one label more, and a longer first label */
        (void) snprintf(below, sizeof(below), "a.%s", pattern.host.name);
        if (pattern.host.kind == HOST_NAME && host_parse(below, &host, NULL) == 0)
                HOLDS(host_pattern_matches(&pattern, &host) == (pattern.kind == PATTERN_BELOW));
        (void) snprintf(below, sizeof(below), "a%s", pattern.host.name);
        if (pattern.host.kind == HOST_NAME && host_parse(below, &host, NULL) == 0)
                HOLDS(!host_pattern_matches(&pattern, &host));
}

static void check_address(const uint8_t *data) {
        Address six = {.family = AF_INET6}, four = {.family = AF_INET}, mapped = {.family = AF_INET6}, again;
        char text[INET6_ADDRSTRLEN];

        memcpy(&six.in6, data, 16);
        (void) address_classify(&six);
        HOLDS(address_parse(address_format(&six, text), &again) == 0 && address_equal(&six, &again));

        memcpy(&four.in4, data, 4);
        mapped.in6.s6_addr[10] = mapped.in6.s6_addr[11] = 0xff;
        memcpy(mapped.in6.s6_addr + 12, data, 4);
        HOLDS(streq_ptr(address_classify(&four), address_classify(&mapped)));
        HOLDS(address_parse(address_format(&four, text), &again) == 0 && address_equal(&four, &again));
        HOLDS(!address_equal(&four, &mapped));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        check_authority((Slice){(const char *) data, size}, 0);
        check_authority((Slice){(const char *) data, size}, 443);
        if (size >= 16)
                check_address(data);

        char *text = malloc(size + 1);
        HOLDS(text);
        memcpy(text, data, size);
        text[size] = 0;
        const char *problem = NULL;
        Address a;
        Host host;
        int r = host_parse(text, &host, &problem);
        HOLDS((r < 0) == (problem != NULL));
        if (r == 0)
                check_host(&host);
        check_pattern(text);
        if (address_parse(text, &a) == 0) {
                HOLDS(host_parse(text, &host, NULL) == 0 && streq(host.name, text));
        }
        free(text);
        return 0;
}
