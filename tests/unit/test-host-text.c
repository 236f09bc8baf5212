/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* errandd keeps hosts as text, and the broker parses them: here the two read the same hosts side by side. */

#include "basic/text.h"
#include "broker/hosts.h"
#include "errandd/egress-notice.h"
#include "errandd/host-text.h"
#include "test.h"

static const char *const rows[] = {
        "example.com", "EXAMPLE.com.", "*.example.com", "*.EXAMPLE.com.", "*", "*.com", "**", "a.*.b", "*.", "*.*.example.com", "*example.com", "", ".", "..",
        "a.", "a..", ".a", "-a.example", "a-.example", "_a.example", "a_b", "9.9.9.9", "9.9.9.9.", "09.9.9.9", "9.9.9", "9", "0x9", "a.0x9", "a.9", "a.9x",
        "1.2.3.4.5", "*.9.9.9.9", "*.4", "[::1]", "::1", "[::1", "::1]", "[]", "[", "]", "::", "::ffff:9.9.9.9", "2606:4700:0:0:0:0:0:1", "[2606:4700::1]",
        "[2606:4700::1]:443", "fe80::1%1", "*.[::1]", "*.::1", "a:443", "http://a.example", "a/b", "a@b", "a b", "a\tb", "a\nb", "%61.example",
        "b\303\274cher.example", "xn--bcher-kva.example", "\357\274\221.1.1.1", "a\\b", "a?b", "a#b", "a,b", "a;b", "localhost",
        "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg.example", "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg.example",
};

static void test_patterns(void) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char ours[HOST_TEXT_MAX + 1], theirs[HOST_NAME_MAX_BYTES + 3];
                const char *problem = NULL;
                HostPattern pattern;

                int r = host_text_normalize(rows[i], HOST_TEXT_ANY | HOST_TEXT_WILDCARD, ours, &problem);
                int q = host_pattern_parse(rows[i], &pattern, &problem);
                if (r != q || (r == 0 && !streq(ours, host_pattern_format(&pattern, theirs))))
                        test_fail(__FILE__, __LINE__, "\"%s\": %d here, %d in the broker", rows[i], r, q);
        }
}

static void test_matching(void) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                        char pattern_text[HOST_TEXT_MAX + 1], host_text[HOST_TEXT_MAX + 1];
                        HostPattern pattern;
                        Host host;

                        if (host_text_normalize(rows[i], HOST_TEXT_ANY | HOST_TEXT_WILDCARD, pattern_text, NULL) < 0 ||
                            host_text_normalize(rows[k], 0, host_text, NULL) < 0)
                                continue;
                        CHECK_INT(host_pattern_parse(rows[i], &pattern, NULL), 0);
                        CHECK_INT(host_parse(rows[k], &host, NULL), 0);
                        if (host_text_covers(pattern_text, host_text) != host_pattern_matches(&pattern, &host))
                                test_fail(__FILE__, __LINE__, "%s and %s", pattern_text, host_text);
                }
}

static void test_lengths(void) {
        /* Names of 250 to 256 bytes, with and without "*." before and a dot behind. */
        for (size_t n = 250; n <= 256; n++)
                for (unsigned form = 0; form < 4; form++) {
                        char text[300] = "", ours[HOST_TEXT_MAX + 1];
                        const char *problem;
                        HostPattern pattern;

                        if (form & 1)
                                strcpy(text, "*.");
                        size_t start = strlen(text);
                        for (size_t i = 0; i < n; i++)
                                text[start + i] = i % 50 == 49 && i + 1 < n ? '.' : 'a';
                        if (form & 2)
                                strcat(text, ".");
                        CHECK_INT(host_text_normalize(text, HOST_TEXT_WILDCARD, ours, &problem), host_pattern_parse(text, &pattern, &problem));
                }
}

static void test_strangers(void) {
        static const char *const many[] = {"*.co.uk", "*.com.au", "*.gov.br", "*.github.io", "*.s3.amazonaws.com", "*.workers.dev"};
        static const char *const fine[] = {"*", "co.uk", "*.example.com", "*.example.co.uk", "*.github.com", "*.me.example", "*.xco.uk", "*.company.uk", "*.a.github.io", "github.io"};

        for (size_t i = 0; i < ELEMENTSOF(many); i++)
                if (!host_text_covers_strangers(many[i]))
                        test_fail(__FILE__, __LINE__, "%s is not warned about", many[i]);
        for (size_t i = 0; i < ELEMENTSOF(fine); i++)
                if (host_text_covers_strangers(fine[i]))
                        test_fail(__FILE__, __LINE__, "%s is warned about", fine[i]);
}

static void test_unicode(void) {
        static const char *const names[] = {"b\303\274cher.example", "*.b\303\274cher.example", "\357\274\221.1.1.1", "a\343\200\202b", "\342\204\252elvin.example"};
        char text[HOST_TEXT_MAX + 1];
        const char *problem;
        HostPattern pattern;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                CHECK_INT(host_text_normalize(names[i], HOST_TEXT_WILDCARD, text, &problem), -EBADMSG);
                CHECK(strstr(problem, "xn-- form"));
                CHECK_INT(host_pattern_parse(names[i], &pattern, &problem), -EBADMSG);
                CHECK(strstr(problem, "xn-- form"));
        }
}

static void test_notice(void) {
        _cleanup_free_ char *text = egress_notice("api.example.com"), *six = egress_notice("2606:4700::1"), *none = egress_notice("*.com\n");

        CHECK_STR(text, "this session tried to reach `api.example.com`, which is not on the egress allowlist or granted. `!grant api.example.com` lets its next "
                        "connection through, and `!grant api.example.com 10m` or `!grant api.example.com always` lets it through for longer");
        CHECK(strstr(six, "`!grant 2606:4700::1`"));
        CHECK(!strstr(none, "!grant") && !strchr(none, '\n') && strstr(none, "*.com"));
}

int main(void) {
        RUN(test_patterns, "C165: errandd accepts and refuses the hosts that the broker does, and writes them alike");
        RUN(test_matching, "S133: a pattern covers in errandd what it matches in the broker");
        RUN(test_strangers, "C119: wildcards above names that anybody can register");
        RUN(test_unicode, "C126: a name in another script is refused with what to write instead");
        RUN(test_notice, "S128 C166: what the thread is told, and a command for a single exact name only");
        RUN(test_lengths, "names of the greatest length");
        return TEST_END();
}
