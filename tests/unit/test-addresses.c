/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/text.h"
#include "shared/addresses.h"
#include "test.h"

static Address address(const char *text) {
        Address a = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};

        if (inet_pton(a.family, text, &a.in6) != 1)
                test_fail(__FILE__, __LINE__, "%s is no address", text);
        return a;
}

static void expect(const char *text, const char *what) {
        Address a = address(text);
        const char *found = address_classify(&a);

        if (!streq_ptr(found, what))
                test_fail(__FILE__, __LINE__, "%s is %s, not %s", text, found ?: "public", what ?: "public");
}

/* Neighbours' verdicts are given where a block lies beside another. NULL is public. */
typedef struct Block {
        const char *before, *before_what, *first, *last, *what, *after, *after_what;
} Block;

static void check_blocks(const Block *blocks, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const Block *b = blocks + i;
                if (b->before)
                        expect(b->before, b->before_what);
                expect(b->first, b->what);
                expect(b->last, b->what);
                if (b->after)
                        expect(b->after, b->after_what);
        }
}

static void test_ipv4_blocks(void) {
        static const Block blocks[] = {
                {NULL, NULL, "0.0.0.0", "0.0.0.0", "unspecified", "0.0.0.1", "reserved"},
                {NULL, NULL, "0.0.0.1", "0.255.255.255", "reserved", "1.0.0.0", NULL},
                {"9.255.255.255", NULL, "10.0.0.0", "10.255.255.255", "private", "11.0.0.0", NULL},
                {"100.63.255.255", NULL, "100.64.0.0", "100.127.255.255", "shared", "100.128.0.0", NULL},
                {"126.255.255.255", NULL, "127.0.0.0", "127.255.255.255", "loopback", "128.0.0.0", NULL},
                {"169.253.255.255", NULL, "169.254.0.0", "169.254.255.255", "link-local", "169.255.0.0", NULL},
                {"172.15.255.255", NULL, "172.16.0.0", "172.31.255.255", "private", "172.32.0.0", NULL},
                {"191.255.255.255", NULL, "192.0.0.0", "192.0.0.255", "reserved", "192.0.1.0", NULL},
                {"192.0.1.255", NULL, "192.0.2.0", "192.0.2.255", "documentation", "192.0.3.0", NULL},
                {"192.31.195.255", NULL, "192.31.196.0", "192.31.196.255", NULL, "192.31.197.0", NULL},
                {"192.52.192.255", NULL, "192.52.193.0", "192.52.193.255", NULL, "192.52.194.0", NULL},
                {"192.88.98.255", NULL, "192.88.99.0", "192.88.99.255", "reserved", "192.88.100.0", NULL},
                {"192.167.255.255", NULL, "192.168.0.0", "192.168.255.255", "private", "192.169.0.0", NULL},
                {"192.175.47.255", NULL, "192.175.48.0", "192.175.48.255", NULL, "192.175.49.0", NULL},
                {"198.17.255.255", NULL, "198.18.0.0", "198.19.255.255", "benchmarking", "198.20.0.0", NULL},
                {"198.51.99.255", NULL, "198.51.100.0", "198.51.100.255", "documentation", "198.51.101.0", NULL},
                {"203.0.112.255", NULL, "203.0.113.0", "203.0.113.255", "documentation", "203.0.114.0", NULL},
                {"223.255.255.255", NULL, "224.0.0.0", "239.255.255.255", "multicast", "240.0.0.0", "reserved"},
                {"239.255.255.255", "multicast", "240.0.0.0", "255.255.255.254", "reserved", "255.255.255.255", "broadcast"},
                {"192.0.0.8", "reserved", "192.0.0.9", "192.0.0.10", "reserved", "192.0.0.170", "reserved"},
        };
        check_blocks(blocks, ELEMENTSOF(blocks));
        expect("9.9.9.9", NULL);
        expect("8.8.8.8", NULL);
        expect("255.255.255.255", "broadcast");
}

static void test_ipv6_blocks(void) {
        static const Block blocks[] = {
                {NULL, NULL, "::", "::", "unspecified", "::1", "loopback"},
                {"::", "unspecified", "::1", "::1", "loopback", "::2", "reserved"},
                {NULL, NULL, "::2", "::909:909", "reserved", NULL, NULL},
                {"64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "64:ff9b::909:909", "64:ff9b::909:909", NULL, "64:ff9b::1:0:0", "reserved"},
                {"64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "reserved", "64:ff9b:1:909:9:909:909:909", "64:ff9b:1:909:9:909:909:909", "private", "64:ff9b:2::", "reserved"},
                {"ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "100::", "100::ffff:ffff:ffff:ffff", "reserved", "100:0:0:2::", "reserved"},
                {"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL, NULL},
                {"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", NULL, NULL},
                {"2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "benchmarking", "2001:2:1::", "reserved"},
                {NULL, NULL, "2001:3::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "2001:200::", NULL},
                {"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation", "2001:db9::", NULL},
                {"2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "2002:909:909::", "2002:909:909:ffff:ffff:ffff:ffff:ffff", "reserved", "2003::", NULL},
                {"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", NULL, "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", NULL, "2620:4f:8001::", NULL},
                {"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "documentation", "3fff:1000::", NULL},
                {"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, "4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", NULL, NULL},
                {NULL, NULL, "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "5f01::", "reserved"},
                {"fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private", "fe00::", "reserved"},
                {"fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local", "fec0::", "private"},
                {"febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private", "ff00::", "multicast"},
                {NULL, NULL, "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast", NULL, NULL},
        };
        check_blocks(blocks, ELEMENTSOF(blocks));
        expect("2606:4700::1", NULL);
        expect("2a00:1450:4001:80b::200e", NULL);
        expect("ff02::1", "multicast");
        expect("100:0:0:1::", "reserved");
}

/* How an IPv4 address hides in an IPv6 one; each is tried with public and refused insides. */
static const struct {
        const char *name;
        unsigned char base[16];
        unsigned at[4];
        bool flipped;
        const char *otherwise; /* the verdict for a public inside */
} forms[] = {
        {"mapped", {[10] = 0xff, 0xff}, {12, 13, 14, 15}, false, NULL},
        {"compatible", {0}, {12, 13, 14, 15}, false, "reserved"},
        {"translated", {[8] = 0xff, 0xff}, {12, 13, 14, 15}, false, "reserved"},
        {"NAT64", {0x00, 0x64, 0xff, 0x9b}, {12, 13, 14, 15}, false, NULL},
        {"local NAT64 /48", {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01, [11] = 9, 9, 9, 9}, {6, 7, 9, 10}, false, "private"},
        {"local NAT64 /56", {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01, 9, [12] = 9, 9, 9, 9}, {7, 9, 10, 11}, false, "private"},
        {"local NAT64 /64", {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01, 9, 9, [13] = 9, 9, 9}, {9, 10, 11, 12}, false, "private"},
        {"local NAT64 /96", {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01, 9, 9, 0, 9, 9, 9}, {12, 13, 14, 15}, false, "private"},
        {"6to4", {0x20, 0x02}, {2, 3, 4, 5}, false, "reserved"},
        {"Teredo client", {0x20, 0x01, 0, 0, 9, 9, 9, 9}, {12, 13, 14, 15}, true, "reserved"},
        {"Teredo server", {0x20, 0x01, [12] = 0xf6, 0xf6, 0xf6, 0xf6}, {4, 5, 6, 7}, false, "reserved"},
        {"ISATAP", {0x26, 0x06, 0x47, [10] = 0x5e, 0xfe}, {12, 13, 14, 15}, false, NULL},
        {"ISATAP universal", {0x26, 0x06, 0x47, [8] = 0x02, 0x00, 0x5e, 0xfe}, {12, 13, 14, 15}, false, NULL},
};

static Address embed(size_t form, const char *inside) {
        Address v4 = address(inside), a = {.family = AF_INET6};
        const unsigned char *bytes = (const unsigned char *) &v4.in4;

        memcpy(&a.in6, forms[form].base, 16);
        for (size_t i = 0; i < 4; i++)
                a.in6.s6_addr[forms[form].at[i]] = forms[form].flipped ? (unsigned char) ~bytes[i] : bytes[i];
        return a;
}

static void test_embedded(void) {
        static const char *const inside[] = {
                "127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "192.168.1.1", "172.16.0.1", "100.64.0.1", "100.100.100.200", "224.0.0.1", "240.0.0.1",
                "198.18.0.1", "192.0.2.1", "255.255.255.255", "0.1.2.3",
        };
        char text[INET6_ADDRSTRLEN];

        for (size_t f = 0; f < ELEMENTSOF(forms); f++) {
                Address a = embed(f, "9.9.9.9");
                const char *what = address_classify(&a);
                if (!streq_ptr(what, forms[f].otherwise))
                        test_fail(__FILE__, __LINE__, "%s %s is %s", forms[f].name, address_format(&a, text), what ?: "public");
                for (size_t i = 0; i < ELEMENTSOF(inside); i++) {
                        Address v4 = address(inside[i]);
                        a = embed(f, inside[i]);
                        what = address_classify(&a);
                        if (!what || !streq(what, address_classify(&v4)))
                                test_fail(__FILE__, __LINE__, "%s %s (%s) is %s", forms[f].name, address_format(&a, text), inside[i], what ?: "public");
                }
        }
}

static void test_unspecified(void) {
        expect("0.0.0.0", "unspecified");
        expect("::", "unspecified");
        expect("::ffff:0.0.0.0", "unspecified");
        expect("::127.0.0.1", "loopback");
        expect("::a9fe:a9fe", "cloud-fabric");
        expect("::ffff:7f00:1", "loopback");
        expect("::ffff:10.0.0.1", "private");
        expect("::ffff:9.9.9.9", NULL);
}

static void test_cloud(void) {
        static const char *const cloud[] = {
                "168.63.129.16", "169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254", "192.0.0.192", "169.254.169.253", "169.254.169.123", "169.254.170.23",
                "169.254.0.23", "169.254.42.42", "fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200", "fd00:ec2::253", "fd00:ec2::123", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fe80::a9fe:a9fe", "::ffff:169.254.169.254",
                "64:ff9b::a83f:8110", "2002:a83f:8110::",
        };
        for (size_t i = 0; i < ELEMENTSOF(cloud); i++)
                expect(cloud[i], "cloud-fabric");
        expect("168.63.129.15", NULL);
        expect("168.63.129.17", NULL);
        static const Block blocks[] = {
                {"161.25.255.255", NULL, "161.26.0.0", "161.26.255.255", "cloud-services", "161.27.0.0", NULL},
                {"166.7.255.255", NULL, "166.8.0.0", "166.11.255.255", "cloud-services", "166.12.0.0", NULL},
                {"fd00:ec1:ffff:ffff:ffff:ffff:ffff:ffff", "private", "fd00:ec2::", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", "cloud-fabric", "fd00:ec3::", "private"},
        };
        check_blocks(blocks, ELEMENTSOF(blocks));
}

static void test_judge_table(void) {
        static const char *const refused[] = {"127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "fe80::1", "::ffff:127.0.0.1", "0.0.0.0", "::"};

        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                Address a = address(refused[i]);
                CHECK_STR(address_judge(&a), address_classify(&a));
        }
        Address none = {.family = AF_UNIX};
        CHECK_STR(address_judge(&none), "unknown");
        CHECK_STR(address_classify(&none), "unknown");
}

static void add_own(const char *text, unsigned bits) {
        struct ifreq ifr = {.ifr_name = "lo"};
        struct in6_ifreq {
                struct in6_addr address;
                uint32_t prefix;
                int index;
        } ifr6;
        Address a = address(text);
        int fd = socket(a.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        CHECK(fd >= 0);
        if (a.family == AF_INET) {
                struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = a.in4};
                memcpy(&ifr.ifr_addr, &in, sizeof(in));
                CHECK_INT(ioctl(fd, SIOCSIFADDR, &ifr), 0);
        } else {
                ifr6 = (struct in6_ifreq){.address = a.in6, .prefix = bits, .index = (int) if_nametoindex("lo")};
                CHECK_INT(ioctl(fd, SIOCSIFADDR, &ifr6), 0);
        }
        close(fd);
}

/* In a network namespace of its own, where the loopback interface bears public addresses. */
static void check_own(void) {
        static const struct {
                const char *text;
                bool own;
        } cases[] = {
                {"9.9.9.9", true}, {"9.9.9.10", false}, {"::ffff:9.9.9.9", true}, {"::ffff:9.9.9.10", false}, {"64:ff9b::909:909", true}, {"64:ff9b::909:90a", false},
                {"2606:4700::5efe:909:909", true}, {"2606:4700::1", true}, {"2606:4700::2", false},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Address a = address(cases[i].text);
                if (!streq_ptr(address_judge(&a), NULL))
                        test_fail(__FILE__, __LINE__, "%s was not public before", cases[i].text);
        }
        add_own("9.9.9.9", 32);
        add_own("2606:4700::1", 128);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Address a = address(cases[i].text);
                if (!streq_ptr(address_judge(&a), cases[i].own ? "own" : NULL))
                        test_fail(__FILE__, __LINE__, "%s was judged %s", cases[i].text, address_judge(&a) ?: "public");
        }
}

static void test_own(void) {
        int status;
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
                if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) < 0)
                        _exit(77);
                int r = setjmp(test_jump);
                if (r == 0)
                        check_own();
                fflush(stdout);
                _exit(r);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                printf("# no network namespace may be made here; the host's own addresses were not tried\n");
        else
                CHECK_INT(WEXITSTATUS(status), 0);
}

static void test_text(void) {
        static const char *const good[] = {"1.2.3.4", "0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8::1", "::ffff:10.0.0.1", "fe80::1", "64:ff9b::9.9.9.9"};
        static const char *const bad[] = {"", "1", "1.2.3", "01.2.3.4", "1.2.3.4.", "1.2.3.256", " 1.2.3.4", "1.2.3.4 ", "1.2.3.4/32", "::01", "2001:DB8::1", "0::1", "[::1]", "::1%lo",
                                          "fe80::1%1", "localhost", "::ffff:a00:1", "0x7f000001", "2130706433", ":", "1.2.3.4:80", "2001:db8:0:0:0:0:0:1"};
        char buffer[INET6_ADDRSTRLEN];
        Address a, b;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                int r = address_parse(good[i], &a);
                /* The C library prints some embedded addresses in hexadecimal, and then that is canonical. */
                if (r < 0 && streq(good[i], "64:ff9b::9.9.9.9"))
                        continue;
                CHECK_INT(r, 0);
                CHECK_STR(address_format(&a, buffer), good[i]);
                CHECK_INT(address_parse(buffer, &b), 0);
                CHECK(address_equal(&a, &b));
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (address_parse(bad[i], &a) != -EINVAL)
                        test_fail(__FILE__, __LINE__, "\"%s\" was taken", bad[i]);
}

static void test_equal(void) {
        Address a = address("10.0.0.5"), b = address("10.0.0.6"), c = address("::ffff:10.0.0.5"), d = address("::1"), e = address("::2");

        CHECK(address_equal(&a, &a) && !address_equal(&a, &b) && !address_equal(&a, &c) && !address_equal(&c, &a));
        CHECK(address_equal(&d, &d) && !address_equal(&d, &e));
        /* what lies behind the four bytes does not count */
        Address dirty = a;
        memset((char *) &dirty.in6 + 4, 0xff, 12);
        CHECK(address_equal(&a, &dirty));
}

static void test_sockaddr(void) {
        struct sockaddr_storage storage;
        Address a = address("10.0.0.5"), b = address("2001:db8::1");

        CHECK_INT(address_to_sockaddr(&a, 443, &storage), sizeof(struct sockaddr_in));
        const struct sockaddr_in *in = (const void *) &storage;
        CHECK(in->sin_family == AF_INET && in->sin_port == htons(443) && in->sin_addr.s_addr == a.in4.s_addr);
        CHECK_INT(address_to_sockaddr(&b, 80, &storage), sizeof(struct sockaddr_in6));
        const struct sockaddr_in6 *in6 = (const void *) &storage;
        CHECK(in6->sin6_family == AF_INET6 && in6->sin6_port == htons(80) && memcmp(&in6->sin6_addr, &b.in6, 16) == 0 && in6->sin6_scope_id == 0);
}

int main(void) {
        RUN(test_ipv4_blocks, "C136 S075 S076: IPv4 blocks, first, last and neighbours");
        RUN(test_ipv6_blocks, "C136 S075 S076: IPv6 blocks, first, last and neighbours");
        RUN(test_embedded, "C128 C129 S075: IPv4 inside IPv6, every form");
        RUN(test_unspecified, "C129: unspecified and IPv4-compatible addresses");
        RUN(test_cloud, "C135 S076: addresses of clouds");
        RUN(test_judge_table, "S075: the judgement follows the table");
        RUN(test_own, "C136 C137 S075: the host's own addresses");
        RUN(test_text, "C131 C132 S078: canonical text only");
        RUN(test_equal, "S078: equality");
        RUN(test_sockaddr, "S074: the address as it is dialled");
        return TEST_END();
}
