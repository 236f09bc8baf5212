/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <ifaddrs.h>

#include "basic/text.h"
#include "shared/addresses.h"

typedef struct Range4 {
        uint32_t network;
        unsigned bits;
        const char *what;
} Range4;

typedef struct Range6 {
        unsigned char network[16];
        unsigned bits;
        const char *what; /* NULL: public */
} Range6;

#define IP4(a, b, c, d) ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))

/* The first row that covers an address decides. Beside each its source: the RFC in the IANA IPv4 Special-Purpose Address Registry, or
 * the cloud whose machines have it. The rows of "cloud-fabric" stand first, as no exception lifts them. The registry's globally
 * reachable blocks (192.31.196.0/24, 192.52.193.0/24, 192.175.48.0/24) are ordinary public hosts and have no row. */
static const Range4 ranges4[] = {
        {IP4(168, 63, 129, 16), 32, "cloud-fabric"},    /* Azure's host agent */
        {IP4(169, 254, 169, 254), 32, "cloud-fabric"},  /* instance metadata of AWS, Azure, Google, OpenStack and more */
        {IP4(169, 254, 169, 253), 32, "cloud-fabric"},  /* AWS: name service */
        {IP4(169, 254, 169, 123), 32, "cloud-fabric"},  /* AWS: time service */
        {IP4(169, 254, 170, 2), 32, "cloud-fabric"},    /* AWS: credentials of ECS tasks */
        {IP4(169, 254, 170, 23), 32, "cloud-fabric"},   /* AWS: credentials of EKS pods */
        {IP4(169, 254, 0, 23), 32, "cloud-fabric"},     /* Tencent metadata */
        {IP4(169, 254, 42, 42), 32, "cloud-fabric"},    /* Scaleway metadata */
        {IP4(100, 100, 100, 200), 32, "cloud-fabric"},  /* Alibaba metadata */
        {IP4(192, 0, 0, 192), 32, "cloud-fabric"},      /* Oracle metadata */
        {IP4(161, 26, 0, 0), 16, "cloud-services"},     /* IBM: names, time, mirrors; routed inside its cloud only */
        {IP4(166, 8, 0, 0), 14, "cloud-services"},      /* IBM: private service endpoints */
        {IP4(0, 0, 0, 0), 32, "unspecified"},           /* RFC 1122; Linux connects it to loopback */
        {IP4(0, 0, 0, 0), 8, "reserved"},               /* RFC 791, "this network" */
        {IP4(10, 0, 0, 0), 8, "private"},               /* RFC 1918 */
        {IP4(100, 64, 0, 0), 10, "shared"},             /* RFC 6598, carrier-grade NAT */
        {IP4(127, 0, 0, 0), 8, "loopback"},             /* RFC 1122 */
        {IP4(169, 254, 0, 0), 16, "link-local"},        /* RFC 3927 */
        {IP4(172, 16, 0, 0), 12, "private"},            /* RFC 1918 */
        {IP4(192, 0, 0, 0), 24, "reserved"},            /* RFC 6890, protocol assignments */
        {IP4(192, 0, 2, 0), 24, "documentation"},       /* RFC 5737 */
        {IP4(192, 88, 99, 0), 24, "reserved"},          /* RFC 7526, once the anycast of 6to4 relays */
        {IP4(192, 168, 0, 0), 16, "private"},           /* RFC 1918 */
        {IP4(198, 18, 0, 0), 15, "benchmarking"},       /* RFC 2544 */
        {IP4(198, 51, 100, 0), 24, "documentation"},    /* RFC 5737 */
        {IP4(203, 0, 113, 0), 24, "documentation"},     /* RFC 5737 */
        {IP4(224, 0, 0, 0), 4, "multicast"},            /* RFC 5771 */
        {IP4(255, 255, 255, 255), 32, "broadcast"},     /* RFC 8190 */
        {IP4(240, 0, 0, 0), 4, "reserved"},             /* RFC 1112 */
};

/* The same for the IANA IPv6 Special-Purpose Address Registry. Whatever has no row and is not in 2000::/3, all that was ever
 * given out as global unicast (IANA IPv6 Address Space; RFC 4291), is reserved. */
static const Range6 ranges6[] = {
        {{0xfd, 0x00, 0x0e, 0xc2}, 32, "cloud-fabric"},                                 /* fd00:ec2::/32, AWS: metadata, names, time, EKS pods */
        {{0xfd, 0x00, 0x01, 0x00, [12] = 0x01, 0x00, 0x02, 0x00}, 128, "cloud-fabric"}, /* fd00:100::100:200, Alibaba metadata */
        {{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54}, 128, "cloud-fabric"},             /* fd20:ce::254, Google metadata */
        {{0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, "cloud-fabric"}, /* fd00:c1::a9fe:a9fe, Oracle metadata */
        {{0xfd, 0x00, 0x00, 0x42, [15] = 0x42}, 128, "cloud-fabric"},                   /* fd00:42::42, Scaleway metadata */
        {{0xfd, 0x00, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 0x01}, 128, "cloud-fabric"},       /* fd00:a9fe:a9fe::1, Linode metadata */
        {{0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128, "cloud-fabric"},             /* fe80::a9fe:a9fe, OpenStack metadata */
        {{0}, 128, "unspecified"},                              /* ::, RFC 4291; Linux connects it to loopback */
        {{[15] = 1}, 128, "loopback"},                          /* ::1, RFC 4291 */
        {{[10] = 0xff, 0xff}, 96, NULL},                        /* ::ffff:0:0/96, RFC 4291, mapped: as the IPv4 address */
        {{0}, 96, "reserved"},                                  /* ::/96, RFC 4291, IPv4-compatible, deprecated */
        {{0x00, 0x64, 0xff, 0x9b}, 96, NULL},                   /* 64:ff9b::/96, RFC 6052, NAT64: as the IPv4 address */
        {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "private"},  /* 64:ff9b:1::/48, RFC 8215, a site's own translation */
        {{0x01, 0x00}, 64, "reserved"},                         /* 100::/64, RFC 6666, discard */
        {{0x01, 0x00, [7] = 1}, 64, "reserved"},                /* 100:0:0:1::/64, RFC 9780, dummy */
        {{0x20, 0x01}, 32, "reserved"},                         /* 2001::/32, RFC 4380, Teredo: its relay is anybody */
        {{0x20, 0x01, 0x00, 0x02}, 48, "benchmarking"},         /* 2001:2::/48, RFC 5180 */
        {{0x20, 0x01}, 23, "reserved"},                         /* 2001::/23, RFC 2928, protocol assignments, ORCHID, DRIP */
        {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},        /* 2001:db8::/32, RFC 3849 */
        {{0x20, 0x02}, 16, "reserved"},                         /* 2002::/16, RFC 3056, 6to4: its relay is anybody (RFC 7526) */
        {{0x3f, 0xff}, 20, "documentation"},                    /* 3fff::/20, RFC 9637 */
        {{0x5f, 0x00}, 16, "reserved"},                         /* 5f00::/16, RFC 9602, segment routing */
        {{0xfc}, 7, "private"},                                 /* fc00::/7, RFC 4193, unique-local */
        {{0xfe, 0x80}, 10, "link-local"},                       /* fe80::/10, RFC 4291 */
        {{0xfe, 0xc0}, 10, "private"},                          /* fec0::/10, RFC 3879, once site-local */
        {{0xff}, 8, "multicast"},                               /* ff00::/8, RFC 4291 */
        {{0x20}, 3, NULL},                                      /* 2000::/3, global unicast */
        {{0}, 0, "reserved"},
};

static const char *classify4(uint32_t address) {
        for (size_t i = 0; i < ELEMENTSOF(ranges4); i++)
                if (((address ^ ranges4[i].network) >> (32 - ranges4[i].bits)) == 0)
                        return ranges4[i].what;
        return NULL;
}

static bool has_prefix(const unsigned char *address, const unsigned char *network, unsigned bits) {
        unsigned bytes = bits / 8, rest = bits % 8;

        return memcmp(address, network, bytes) == 0 && (rest == 0 || ((address[bytes] ^ network[bytes]) >> (8 - rest)) == 0);
}

static const char *classify6(const unsigned char *address) {
        for (size_t i = 0; i < ELEMENTSOF(ranges6); i++)
                if (has_prefix(address, ranges6[i].network, ranges6[i].bits))
                        return ranges6[i].what;
        return "reserved";
}

static uint32_t read4(const unsigned char *p) {
        return IP4(p[0], p[1], p[2], p[3]);
}

#define EMBEDDED_MAX 4

/* The IPv4 addresses that packets to this one may be unwrapped or translated to. */
static size_t embedded(const unsigned char *a, uint32_t ret[EMBEDDED_MAX]) {
        static const unsigned char zero[12], mapped[12] = {[10] = 0xff, 0xff}, translated[12] = {[8] = 0xff, 0xff},
                                   nat64[12] = {0x00, 0x64, 0xff, 0x9b}, nat64_local[6] = {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01};
        static const unsigned char teredo[4] = {0x20, 0x01}, isatap[4] = {0x00, 0x00, 0x5e, 0xfe};
        size_t n = 0;

        /* :: and ::1 are themselves, not 0.0.0.0 and 0.0.0.1 */
        if (memcmp(a, zero, 12) == 0 && read4(a + 12) > 1)
                ret[n++] = read4(a + 12);
        if (memcmp(a, mapped, 12) == 0 || memcmp(a, translated, 12) == 0 || memcmp(a, nat64, 12) == 0)
                ret[n++] = read4(a + 12);
        if (memcmp(a, nat64_local, 6) == 0) { /* RFC 6052, section 2.2, for /48, /56, /64 and /96 */
                ret[n++] = IP4(a[6], a[7], a[9], a[10]);
                ret[n++] = IP4(a[7], a[9], a[10], a[11]);
                ret[n++] = read4(a + 9);
                ret[n++] = read4(a + 12);
        }
        if (a[0] == 0x20 && a[1] == 0x02)
                ret[n++] = read4(a + 2);
        if (memcmp(a, teredo, 4) == 0) { /* server, and the client with its bits flipped */
                ret[n++] = read4(a + 4);
                ret[n++] = ~read4(a + 12);
        }
        /* RFC 5214: the interface identifier, whose universal bit may be set */
        if (n == 0 && (a[8] & 0xfd) == isatap[0] && memcmp(a + 9, isatap + 1, 3) == 0)
                ret[n++] = read4(a + 12);
        return n;
}

/* Of all that is inside, what says most: a cloud's address before any other. */
static const char *classify_embedded(const unsigned char *address) {
        uint32_t inside[EMBEDDED_MAX];
        const char *found = NULL;

        for (size_t i = 0, n = embedded(address, inside); i < n; i++) {
                const char *what = classify4(inside[i]);
                if (what && (!found || streq(what, "cloud-fabric")))
                        found = what;
        }
        return found;
}

const char *address_classify(const Address *address) {
        if (address->family == AF_INET)
                return classify4(ntohl(address->in4.s_addr));
        if (address->family != AF_INET6)
                return "unknown";

        const unsigned char *bytes = address->in6.s6_addr;
        const char *inside = classify_embedded(bytes), *outside = classify6(bytes);
        return outside && streq(outside, "cloud-fabric") ? outside : inside ?: outside;
}

static bool is_own(const Address *address, const struct ifaddrs *list) {
        uint32_t inside[EMBEDDED_MAX];
        size_t n = 0;

        if (address->family == AF_INET)
                inside[n++] = ntohl(address->in4.s_addr);
        else
                n = embedded(address->in6.s6_addr, inside);
        for (; list; list = list->ifa_next) {
                if (!list->ifa_addr)
                        continue;
                if (list->ifa_addr->sa_family == AF_INET) {
                        const struct sockaddr_in *own = (const void *) list->ifa_addr;
                        for (size_t i = 0; i < n; i++)
                                if (inside[i] == ntohl(own->sin_addr.s_addr))
                                        return true;
                } else if (list->ifa_addr->sa_family == AF_INET6 && address->family == AF_INET6) {
                        const struct sockaddr_in6 *own = (const void *) list->ifa_addr;
                        if (memcmp(&own->sin6_addr, &address->in6, sizeof(address->in6)) == 0)
                                return true;
                }
        }
        return false;
}

bool address_never_opened(const char *what) {
        return streq_ptr(what, "cloud-fabric") || streq_ptr(what, "unspecified");
}

const char *address_judge(const Address *address) {
        const char *what = address_classify(address);
        struct ifaddrs *list;

        if (what)
                return what;
        /* Whose it is cannot be told, so it is not public. */
        if (getifaddrs(&list) < 0)
                return "unknown";
        if (is_own(address, list))
                what = "own";
        freeifaddrs(list);
        return what;
}

int address_parse(const char *text, Address *ret) {
        char canonical[INET6_ADDRSTRLEN];
        Address a = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};

        if (inet_pton(a.family, text, &a.in6) != 1 || !streq(address_format(&a, canonical), text))
                return -EINVAL;
        *ret = a;
        return 0;
}

const char *address_format(const Address *address, char buffer[INET6_ADDRSTRLEN]) {
        if (!inet_ntop(address->family, &address->in6, buffer, INET6_ADDRSTRLEN))
                strcpy(buffer, "?");
        return buffer;
}

bool address_equal(const Address *a, const Address *b) {
        size_t size = a->family == AF_INET ? sizeof(a->in4) : sizeof(a->in6);
        return a->family == b->family && memcmp(&a->in6, &b->in6, size) == 0;
}

socklen_t address_to_sockaddr(const Address *address, uint16_t port, struct sockaddr_storage *ret) {
        memset(ret, 0, sizeof(*ret));
        if (address->family == AF_INET) {
                struct sockaddr_in *in = (struct sockaddr_in *) ret;
                *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address->in4};
                return sizeof(*in);
        }
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) ret;
        *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = address->in6};
        return sizeof(*in6);
}
