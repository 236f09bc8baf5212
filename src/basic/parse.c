/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <limits.h>

#include "basic/parse.h"
#include "basic/text.h"

int parse_u64_n(const char *s, size_t size, uint64_t max, uint64_t *ret) {
        uint64_t value = 0;

        if (size == 0)
                return -EINVAL;
        for (size_t i = 0; i < size; i++) {
                if (!ascii_digit(s[i]))
                        return -EINVAL;
                if (__builtin_mul_overflow(value, 10U, &value) || __builtin_add_overflow(value, (unsigned) (s[i] - '0'), &value))
                        return -ERANGE;
        }
        if (value > max)
                return -ERANGE;
        *ret = value;
        return 0;
}

int parse_u64(const char *s, uint64_t max, uint64_t *ret) {
        return parse_u64_n(s, strlen(s), max, ret);
}

int parse_fd(const char *s, int *ret) {
        uint64_t value;
        int r = parse_u64(s, INT_MAX, &value);
        if (r < 0)
                return r;
        *ret = (int) value;
        return 0;
}

int parse_port(const char *s, uint16_t *ret) {
        uint64_t value;
        int r = parse_u64(s, UINT16_MAX, &value);
        if (r < 0)
                return r;
        if (value == 0)
                return -ERANGE;
        *ret = (uint16_t) value;
        return 0;
}

int parse_bytes(const char *s, uint64_t *ret) {
        static const char suffixes[] = "kmgt";
        size_t size = strlen(s);
        unsigned shift = 0;
        uint64_t value;

        if (size > 1) {
                const char *at = strchr(suffixes, ascii_lower(s[size - 1]));
                if (at && *at) {
                        shift = 10U * (unsigned) (at - suffixes + 1);
                        size--;
                }
        }
        int r = parse_u64_n(s, size, (UINT64_C(1) << 60) >> shift, &value);
        if (r < 0)
                return r;
        *ret = value << shift;
        return 0;
}

int parse_loopback_listen(const char *s, uint32_t *ret_address, uint16_t *ret_port) {
        char host[INET_ADDRSTRLEN], canonical[INET_ADDRSTRLEN];
        struct in_addr address;
        uint16_t port;

        const char *colon = strrchr(s, ':');
        if (!colon || (size_t) (colon - s) >= sizeof(host))
                return -EINVAL;
        memcpy(host, s, (size_t) (colon - s));
        host[colon - s] = 0;

        if (inet_pton(AF_INET, host, &address) != 1 || !inet_ntop(AF_INET, &address, canonical, sizeof(canonical)) ||
            !streq(host, canonical))
                return -EINVAL;
        if ((ntohl(address.s_addr) >> 24) != 127)
                return -ERANGE;
        int r = parse_port(colon + 1, &port);
        if (r < 0)
                return r;
        *ret_address = address.s_addr;
        *ret_port = port;
        return 0;
}
