/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/hosts.h"
#include "test.h"

typedef struct Case {
        const char *text;
        size_t size; /* for texts with a NUL; else 0 */
        int r;
        const char *name;
        HostKind kind;
        uint16_t port;
} Case;

static void check_authorities(const Case *cases, size_t n, uint16_t default_port) {
        for (size_t i = 0; i < n; i++) {
                Slice text = {cases[i].text, cases[i].size ?: strlen(cases[i].text)};
                const char *problem = NULL;
                uint16_t port = 7;
                Host host = {.name = "untouched"};

                int r = host_parse_authority(text, default_port, &host, &port, &problem);
                if (r != cases[i].r)
                        test_fail(__FILE__, __LINE__, "%s gave %d (%s)", cases[i].text, r, problem ?: "-");
                CHECK((r < 0) == (problem != NULL));
                CHECK_STR(host.name, r < 0 ? "untouched" : cases[i].name);
                CHECK_INT(port, r < 0 ? 7 : cases[i].port);
                if (r >= 0)
                        CHECK_INT(host.kind, cases[i].kind);
        }
}
#define CHECK_AUTHORITIES(cases, port) check_authorities(cases, ELEMENTSOF(cases), port)
#define BAD(text) {text, sizeof(text) - 1, -EBADMSG, NULL, 0, 0}
#define RANGE(text) {text, 0, -ERANGE, NULL, 0, 0}
#define GOOD(text, name, kind, port) {text, 0, 0, name, kind, port}

static void test_names(void) {
        static const Case cases[] = {
                GOOD("api.example.com:443", "api.example.com", HOST_NAME, 443), GOOD("a:1", "a", HOST_NAME, 1),
                GOOD("_dmarc.ex-ample.com:65535", "_dmarc.ex-ample.com", HOST_NAME, 65535), GOOD("3com.com:80", "3com.com", HOST_NAME, 80),
                GOOD("1.2.3.4a:80", "1.2.3.4a", HOST_NAME, 80), GOOD("r3---sn.example:80", "r3---sn.example", HOST_NAME, 80),
                GOOD("xn--bcher-kva.example:80", "xn--bcher-kva.example", HOST_NAME, 80), GOOD("xn--:80", "xn--", HOST_NAME, 80),
                BAD("-o.example:80"), BAD("--help:80"), BAD(""), BAD(":"), BAD(":443"), BAD("."), BAD(".:443"), BAD("a b:80"), BAD("a,b:80"), BAD("*:80"),
                BAD("*.example.com:443"), BAD("a*:80"), BAD("a+b:80"), BAD("a~b:80"), BAD("a!:80"), BAD("a;b:80"), BAD("a=b:80"), BAD("a&b:80"), BAD("(a):80"),
        };
        CHECK_AUTHORITIES(cases, 0);
}

static void test_dots(void) {
        static const Case cases[] = {
                GOOD("localhost.:80", "localhost", HOST_NAME, 80), GOOD("169.254.169.254.:80", "169.254.169.254", HOST_IPV4, 80),
                GOOD("api.example.com.:443", "api.example.com", HOST_NAME, 443),
                BAD("LOCALHOST..:80"), BAD("127.0.0.1..:80"), BAD(".example.com:80"), BAD("a..example.com:80"), BAD("..:80"), BAD("...:80"), BAD(".a.:80"),
                BAD("[::1].:80"), BAD("[::1.]:80"),
        };
        CHECK_AUTHORITIES(cases, 0);
}

static void test_lengths(void) {
        char text[600], name[256];
        const char *problem;
        uint16_t port;
        Host host;

        /* 63 bytes a label, 253 a name */
        for (size_t n = 62; n <= 65; n++) {
                memset(text, 'a', n);
                strcpy(text + n, ".example:80");
                CHECK_INT(host_parse_authority((Slice){text, strlen(text)}, 0, &host, &port, &problem), n > 63 ? -EBADMSG : 0);
        }
        for (size_t n = 250; n <= 256; n++) {
                for (size_t i = 0; i < n; i++)
                        text[i] = i % 50 == 49 && i + 1 < n ? '.' : 'a';
                memcpy(name, text, MIN(n, sizeof(name) - 1));
                name[MIN(n, sizeof(name) - 1)] = 0;
                for (int dot = 0; dot < 2; dot++) {
                        strcpy(text + n, dot ? ".:80" : ":80");
                        int r = host_parse_authority((Slice){text, strlen(text)}, 0, &host, &port, &problem);
                        CHECK_INT(r, n > 253 ? -EBADMSG : 0);
                        if (r >= 0)
                                CHECK_STR(host.name, name);
                }
        }
}

static void test_case(void) {
        static const Case cases[] = {
                GOOD("Api.EXAMPLE.com:443", "api.example.com", HOST_NAME, 443), GOOD("A-Z_0:1", "a-z_0", HOST_NAME, 1),
                BAD("\xc5\xbf.example:80") /* long s */, BAD("\xe2\x84\xaa.example:80") /* Kelvin sign */,
        };
        CHECK_AUTHORITIES(cases, 0);
}

static void test_userinfo(void) {
        static const Case cases[] = {
                BAD("api.example.com@9.9.9.9:8000"), BAD("api.example.com:80@denied.example"), BAD("api.example.com@denied.example:443"), BAD("@a:80"),
                BAD("a@:80"), BAD("a:b@c:80"), BAD("[::1]@a:80"), BAD("a@[::1]:80"),
        };
        CHECK_AUTHORITIES(cases, 80);
        CHECK_AUTHORITIES(cases, 0);
}

static void test_odd_characters(void) {
        static const Case cases[] = {
                BAD("api.example.com\\@denied.example"), BAD("api.example.com%2f@denied.example"), BAD("api.example.com\tdenied.example"),
                BAD("api.example.com#@denied.example"), BAD("api%2eexample.com"), BAD("api.example.com/"), BAD("api.example.com?"), BAD("api.example.com "),
                BAD(" api.example.com"), BAD("api.example.com\r"), BAD("api.example.com\n"), BAD("api.example.com\0denied"), BAD("\0"),
                BAD("http://api.example.com"), BAD("//api.example.com"), BAD("a:80/x"), BAD("a\x7f"), BAD("a\x1b"), BAD("\"a\""), BAD("<a>"), BAD("a|b"), BAD("a^b"),
        };
        CHECK_AUTHORITIES(cases, 80);
}

static void test_ports(void) {
        static const Case strict[] = {
                GOOD("api.example.com:22", "api.example.com", HOST_NAME, 22), GOOD("api.example.com:25", "api.example.com", HOST_NAME, 25),
                GOOD("[::1]:443", "::1", HOST_IPV6, 443), RANGE("api.example.com:0"), RANGE("api.example.com:65536"), RANGE("api.example.com:99999"), RANGE("[::1]:0"),
                BAD("api.example.com:0443"), BAD("api.example.com:00"), BAD("api.example.com:+443"), BAD("api.example.com: 443"), BAD("api.example.com:443x"),
                BAD("api.example.com:-1"), BAD("api.example.com:100000"), BAD("api.example.com:000443"), BAD("api.example.com:0x1bb"), BAD("api.example.com:443 "),
                BAD("api.example.com"), BAD("api.example.com:"), BAD("api.example.com::443"), BAD("api.example.com:443:443"), BAD("[::1]"), BAD("[::1]:"), BAD("[::1]443"),
                BAD("[::1]x:443"), BAD("[::1]]:443"), BAD("api.example.com:\xef\xbc\x94"), BAD("api.example.com:4294967739"), BAD("a:18446744073709552059"),
        };
        static const Case loose[] = {
                GOOD("api.example.com", "api.example.com", HOST_NAME, 80), GOOD("api.example.com:8080", "api.example.com", HOST_NAME, 8080),
                GOOD("[::1]", "::1", HOST_IPV6, 80), GOOD("1.2.3.4", "1.2.3.4", HOST_IPV4, 80), BAD("api.example.com:"), BAD("[::1]:"), BAD(":80"), BAD(""),
        };
        CHECK_AUTHORITIES(strict, 0);
        CHECK_AUTHORITIES(loose, 80);
}

static void test_unicode(void) {
        static const Case cases[] = {
                BAD("\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1:80") /* full-width digits */, BAD("api\xe3\x80\x82" "example\xe3\x80\x82" "com:443") /* ideographic stop */,
                BAD("ex\xe2\x84\x80mple.com:443") /* account of */, BAD("ex\xc2\xad" "ample.com:443") /* soft hyphen */, BAD("\xe2\x80\x8f" "a.example:80") /* right-to-left mark */,
                BAD("b\xc3\xbc" "cher.example:443"), BAD("a\xff.example:443"), BAD("a\x80:443"), BAD("a\0.example:443"),
        };
        CHECK_AUTHORITIES(cases, 80);
}

static void test_ipv6(void) {
        static const Case cases[] = {
                GOOD("[::]:80", "::", HOST_IPV6, 80), GOOD("[2001:DB8:0:0::0001]:80", "2001:db8::1", HOST_IPV6, 80),
                GOOD("[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", HOST_IPV6, 80), GOOD("[::ffff:7f00:1]:80", "::ffff:127.0.0.1", HOST_IPV6, 80),
                GOOD("[0:0:0:0:0:ffff:127.0.0.1]:80", "::ffff:127.0.0.1", HOST_IPV6, 80), GOOD("[::127.0.0.1]:80", "::127.0.0.1", HOST_IPV6, 80),
                GOOD("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:80", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", HOST_IPV6, 80),
                BAD("[::1%lo]:80"), BAD("[::1%25lo]:80"), BAD("[fe80::1%1]:80"), BAD("[]:80"), BAD("[:]:80"), BAD("[::1:80"), BAD("::1]:80"), BAD("[[::1]]:80"),
                BAD("[127.0.0.1]:80"), BAD("[localhost]:80"), BAD("[v1.a]:80"), BAD("[::1 ]:80"), BAD("[ ::1]:80"), BAD("[::ffff:0177.0.0.1]:80"),
                BAD("[::ffff:127.1]:80"), BAD("[1:2:3:4:5:6:7]:80"), BAD("[1::2::3]:80"), BAD("[00001::]:80"), BAD("[::1\0]:80"), BAD("[::g]:80"), BAD("::1"), BAD("["), BAD("]"),
                GOOD("[0000:0000:0000:0000:0000:ffff:255.255.255.255]:80", "::ffff:255.255.255.255", HOST_IPV6, 80), BAD("[0000:0000:0000:0000:0000:ffff:255.255.255.2555]:80"),
                BAD("[000000000000000000000000000000000000000000000000000::1]:80"),
        };
        CHECK_AUTHORITIES(cases, 80);
}

static void test_numbers(void) {
        static const Case cases[] = {
                GOOD("127.0.0.1:80", "127.0.0.1", HOST_IPV4, 80), GOOD("0.0.0.0:80", "0.0.0.0", HOST_IPV4, 80), GOOD("255.255.255.255:80", "255.255.255.255", HOST_IPV4, 80),
                GOOD("0x7f.example:80", "0x7f.example", HOST_NAME, 80), GOOD("1.2.3.4.example:80", "1.2.3.4.example", HOST_NAME, 80),
                BAD("0177.0.0.1:80"), BAD("012.0.0.1:80"), BAD("127.0.0.01:80"), BAD("0000127.0.0.1:80"), BAD("169.254.0251.254:80"), BAD("2130706433:80"),
                BAD("0x7f000001:80"), BAD("0X7F000001:80"), BAD("0x7f.1:80"), BAD("127.1:80"), BAD("127.0.1:80"), BAD("0xa9fea9fe:80"), BAD("1.0x01010101:80"), BAD("0:80"), BAD("00:80"),
                BAD("0x:80"), BAD("0x0:80"), BAD("a.0x7f:80"), BAD("a.1:80"), BAD("example.com.443:80"), BAD("256.0.0.1:80"), BAD("1.2.3.4.5:80"), BAD("1.2.3:80"), BAD("1.2.3.04:80"),
                BAD("127.0.0.0x1:80"), BAD("017700000001:80"), BAD("2130706433.:80"), BAD("127.1.:80"), BAD("99999999999999999999:80"), BAD("1e3.0x1p4:80"),
        };
        CHECK_AUTHORITIES(cases, 80);
}

static void test_alone(void) {
        static const struct {
                const char *text, *name;
                HostKind kind;
        } cases[] = {
                {"api.example.com", "api.example.com", HOST_NAME}, {"API.example.com.", "api.example.com", HOST_NAME}, {"1.2.3.4", "1.2.3.4", HOST_IPV4},
                {"::1", "::1", HOST_IPV6}, {"[::1]", "::1", HOST_IPV6}, {"2001:DB8::0", "2001:db8::", HOST_IPV6},
                {"", NULL, 0}, {"a:80", NULL, 0}, {"1.2.3.4:80", NULL, 0}, {"[::1]:80", NULL, 0}, {"[::1", NULL, 0}, {"::1]", NULL, 0}, {"[]", NULL, 0},
                {"*", NULL, 0}, {"a b", NULL, 0}, {"https://a", NULL, 0}, {"[1.2.3.4]", NULL, 0}, {"[a]", NULL, 0}, {"127.1", NULL, 0}, {":", NULL, 0}, {"-a", NULL, 0},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *problem = NULL;
                Host host, again;
                int r = host_parse(cases[i].text, &host, &problem);
                if (r != (cases[i].name ? 0 : -EBADMSG))
                        test_fail(__FILE__, __LINE__, "%s gave %d", cases[i].text, r);
                CHECK((r < 0) == (problem != NULL));
                if (r < 0)
                        continue;
                CHECK_STR(host.name, cases[i].name);
                CHECK_INT(host.kind, cases[i].kind);
                CHECK_INT(host_parse(host.name, &again, NULL), 0);
                CHECK(memcmp(&host, &again, sizeof(host)) == 0);
        }
}

static void test_patterns_refused(void) {
        static const char *const bad[] = {
                "", "*com", "www*.com", "api.*.com", "*.*.com", "**.example.com", "**", "*.", "*..", "*.com", "*.com.", "https://x", "x:443/path", "x:443", " example.com ",
                "example.com ", "*.example.com:443", "*. example.com", "*.1.2.3.4", "*.1", "*.0x7f", "*.[::1]", "*.::1", "*.a..b", "*..a.b", "*.-a.b", "a.*", "*a.example.com", "127.1",
                "b\xc3\xbc" "cher.example", "*.b\xc3\xbc" "cher.example", ".example.com", "example.com*", "!example.com", "/example/", "~a", "?.example.com",
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                const char *problem = NULL;
                HostPattern pattern;
                if (host_pattern_parse(bad[i], &pattern, &problem) != -EBADMSG || !problem)
                        test_fail(__FILE__, __LINE__, "\"%s\" was taken", bad[i]);
        }

        /* What people paste. */
        static const char *const more[] = {"https://x", "x:443", "x:443/path", "x/path"};
        for (size_t i = 0; i < ELEMENTSOF(more); i++) {
                const char *problem = NULL;
                HostPattern pattern;
                CHECK(host_pattern_parse(more[i], &pattern, &problem) < 0);
                CHECK_STR(problem, "the host has to stand alone, without a scheme, port or path");
        }
}

static void test_patterns_match(void) {
        static const struct {
                const char *pattern, *host;
                bool match;
        } cases[] = {
                {"*.example.com", "a.example.com", true}, {"*.example.com", "a.example.com.", true}, {"*.example.com", "a.b.example.com", true},
                {"*.Example.com", "A.EXAMPLE.COM", true}, {"*.example.com.", "a.example.com", true},
                {"*.example.com", "example.com", false}, {"*.example.com", "evilexample.com", false}, {"*.example.com", "xexample.com", false},
                {"*.example.com", "example.com.evil.test", false}, {"*.example.com", "a.example.comx", false}, {"*.example.com", "a.example.org", false},
                {"*.example.com", "com", false}, {"*.example.com", "m", false}, {"*.example.com", "1.2.3.4", false}, {"*.example.com", "::1", false},
                {"API.Example.COM", "api.example.com", true}, {"api.example.com", "Api.EXAMPLE.com", true}, {"api.example.com", "api.example.com.", true},
                {"api.example.com.", "api.example.com", true}, {"example.com", "a.example.com", false}, {"example.com", "a.b.example.com", false},
                {"example.com", "example.co", false}, {"example.com", "example.comm", false}, {"10.0.0.5", "10.0.0.5", true}, {"10.0.0.5", "10.0.0.50", false},
                {"10.0.0.5", "::ffff:10.0.0.5", false}, {"::1", "0:0::1", true}, {"[::1]", "::1", true}, {"::1", "::2", false},
                {"*", "example.com", true}, {"*", "a", true}, {"*", "1.2.3.4", true}, {"*", "::1", true},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                HostPattern pattern, again;
                char buffer[HOST_NAME_MAX_BYTES + 3];
                Host host;
                CHECK_INT(host_pattern_parse(cases[i].pattern, &pattern, NULL), 0);
                CHECK_INT(host_parse(cases[i].host, &host, NULL), 0);
                if (host_pattern_matches(&pattern, &host) != cases[i].match)
                        test_fail(__FILE__, __LINE__, "%s and %s", cases[i].pattern, cases[i].host);
                CHECK_INT(host_pattern_parse(host_pattern_format(&pattern, buffer), &again, NULL), 0);
                CHECK(memcmp(&pattern, &again, sizeof(pattern)) == 0);
        }
}

static void test_pattern_format(void) {
        char text[600] = "*.", buffer[HOST_NAME_MAX_BYTES + 3];
        HostPattern pattern;

        for (size_t i = 0; i < 253; i++)
                text[2 + i] = i % 50 == 49 ? '.' : 'a';
        CHECK_INT(host_pattern_parse(text, &pattern, NULL), 0);
        CHECK_STR(host_pattern_format(&pattern, buffer), text);
        CHECK_INT(host_pattern_parse("*", &pattern, NULL), 0);
        CHECK_STR(host_pattern_format(&pattern, buffer), "*");
}

int main(void) {
        RUN(test_names, "C115: names and malformed ones");
        RUN(test_dots, "C116: trailing dots");
        RUN(test_lengths, "C115: lengths of labels and names");
        RUN(test_case, "C118: case");
        RUN(test_userinfo, "C121: userinfo");
        RUN(test_odd_characters, "C122: the authority's characters");
        RUN(test_ports, "C125: ports");
        RUN(test_unicode, "C126: no byte beyond ASCII");
        RUN(test_ipv6, "C128 C129: IPv6 literals");
        RUN(test_numbers, "C131 C132: names that read as numbers");
        RUN(test_alone, "C115 C131: a host alone");
        RUN(test_patterns_refused, "C119: every other use of a star");
        RUN(test_patterns_match, "C115 C118 C120: what a pattern covers");
        RUN(test_pattern_format, "C119: patterns are printed as they are read");
        return TEST_END();
}
