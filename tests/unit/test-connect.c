/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/base64.h"
#include "basic/text.h"
#include "connect/dialogue.h"
#include "test.h"

static void test_base64(void) {
        static const char *const cases[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
                                               {"foobar", "Zm9vYmFy"}, {"\xff\xfe\xfb", "//77"}}; /* RFC 4648, section 10 */
        char buffer[16] = "";

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                size_t n = base64_encode(cases[i][0], strlen(cases[i][0]), buffer);
                CHECK_INT(n, BASE64_SIZE(strlen(cases[i][0])));
                buffer[n] = 0;
                CHECK_STR(buffer, cases[i][1]);
        }
}

static void test_url(void) {
        static const struct {
                const char *text;
                int r;
                const char *host;
                uint16_t port;
                const char *basic;
        } cases[] = {
                {"http://errand:abc@127.0.0.1:20001", 0, "127.0.0.1", 20001, "ZXJyYW5kOmFiYw=="},
                {"http://127.0.0.1:20001/", 0, "127.0.0.1", 20001, NULL}, {"http://localhost", 0, "localhost", 80, NULL},
                {"http://[::1]:8080/x?y#z", 0, "::1", 8080, NULL}, {"http://[::1]", 0, "::1", 80, NULL},
                {"http://u%3a:p%40%2F@h:1", 0, "h", 1, "dTo6cEAv"}, {"http://a@b@h:1", 0, "h", 1, "YUBi"}, {"http://@h:1", 0, "h", 1, ""},
                {"socks5h://127.0.0.1:1", -EPROTONOSUPPORT, NULL, 0, NULL}, {"https://h:1", -EPROTONOSUPPORT, NULL, 0, NULL},
                {"127.0.0.1:20001", -EPROTONOSUPPORT, NULL, 0, NULL}, {"", -EPROTONOSUPPORT, NULL, 0, NULL}, {"http://", -EBADMSG, NULL, 0, NULL},
                {"http://:1", -EBADMSG, NULL, 0, NULL}, {"http://h:", -EBADMSG, NULL, 0, NULL}, {"http://h:0", -EBADMSG, NULL, 0, NULL},
                {"http://h:65536", -EBADMSG, NULL, 0, NULL}, {"http://h:1x", -EBADMSG, NULL, 0, NULL}, {"http://[::1", -EBADMSG, NULL, 0, NULL},
                {"http://[::1]x", -EBADMSG, NULL, 0, NULL}, {"http://[]:1", -EBADMSG, NULL, 0, NULL}, {"http://u%4:p@h:1", -EBADMSG, NULL, 0, NULL},
                {"http://u%zz:p@h:1", -EBADMSG, NULL, 0, NULL}, {"http://u:p%@h:1", -EBADMSG, NULL, 0, NULL},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(proxy_url_freep) ProxyUrl *u = NULL;
                const char *problem = NULL;

                int r = proxy_url_parse(cases[i].text, &u, &problem);
                if (r != cases[i].r || (r < 0) != (problem != NULL) || (r < 0) != !u)
                        test_fail(__FILE__, __LINE__, "%s gave %d (%s)", cases[i].text, r, problem ?: "-");
                if (r < 0)
                        continue;
                CHECK_STR(u->host, cases[i].host);
                CHECK_INT(u->port, cases[i].port);
                CHECK_INT(u->basic != NULL, cases[i].basic != NULL);
                if (u->basic)
                        CHECK_STR(secret_data(u->basic), cases[i].basic);
        }
}

static void test_environment(void) {
        const char *name = NULL, *problem = NULL;
        ProxyUrl *u = NULL;

        clearenv();
        CHECK_INT(proxy_url_from_environment(&u, &name, &problem), -ENOENT);
        setenv("ALL_PROXY", "http://d:1", 1);
        setenv("all_proxy", "http://c:1", 1);
        setenv("HTTPS_PROXY", "http://b:1", 1);
        setenv("https_proxy", "", 1); /* empty counts as none */
        CHECK_INT(proxy_url_from_environment(&u, &name, &problem), 0);
        CHECK_STR(name, "HTTPS_PROXY");
        CHECK_STR(u->host, "b");
        u = proxy_url_free(u);
        unsetenv("HTTPS_PROXY");
        CHECK_INT(proxy_url_from_environment(&u, &name, &problem), 0);
        CHECK_STR(name, "all_proxy");
        u = proxy_url_free(u);
        setenv("https_proxy", "socks5h://a:1", 1);
        CHECK_INT(proxy_url_from_environment(&u, &name, &problem), -EPROTONOSUPPORT);
        CHECK_STR(name, "https_proxy");
}

static void test_authority(void) {
        static const char *const good[][3] = {{"a.example", "22", "a.example:22"}, {"9.9.9.9", "443", "9.9.9.9:443"}, {"::1", "1", "[::1]:1"},
                                              {"2606:4700::2", "65535", "[2606:4700::2]:65535"}, {"_x-y.Z", "80", "_x-y.Z:80"}};
        static const char *const bad[][2] = {{"", "22"}, {"a b", "22"}, {"a\r\nX: y", "22"}, {"a\n", "22"}, {"a/b", "22"}, {"[::1]", "22"}, {"u@h", "22"},
                                             {"a%25", "22"}, {"fe80::1%eth0", "22"}, {"h", ""}, {"h", "0"}, {"h", "65536"}, {"h", "22 "}, {"h", "-1"},
                                             {"h", "ssh"}, {"\xc3\xa4", "22"}, {"a:b.example", "1"}};
        char buffer[AUTHORITY_MAX + 1], longest[300];

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                CHECK_INT(authority_format(good[i][0], good[i][1], buffer), 0);
                CHECK_STR(buffer, good[i][2]);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (authority_format(bad[i][0], bad[i][1], buffer) != -EINVAL)
                        test_fail(__FILE__, __LINE__, "%s %s is taken", bad[i][0], bad[i][1]);
        memset(longest, 'a', sizeof(longest));
        longest[254] = 0;
        CHECK_INT(authority_format(longest, "65535", buffer), -EINVAL);
        longest[253] = 0;
        CHECK_INT(authority_format(longest, "65535", buffer), 0);
        CHECK_INT(strlen(buffer), 259);
}

static void test_answer(void) {
        static const struct {
                const char *text;
                ssize_t r;
                unsigned status;
                uint64_t body;
        } cases[] = {
                {"HTTP/1.1 200 Connection Established\r\n\r\nSSH-2.0", 39, 200, 0}, {"HTTP/1.0 200\r\n\r\n", 16, 200, 0},
                {"HTTP/1.1 403 no\r\nContent-Length: 12\r\n\r\n", 39, 403, 12}, {"HTTP/1.1 403 no\r\nX: y\r\ncontent-length:7 \r\n\r\n", 44, 403, 7},
                {"HTTP/1.1 403 no\r\nContent-Length: -1\r\n\r\n", 39, 403, 0},
                {"", 0, 0, 0}, {"HTTP/1", 0, 0, 0}, {"HTTP/1.1 200 ok\r\nX: y\r\n", 0, 0, 0}, {"SSH-2.0-x\r\n", -EBADMSG, 0, 0}, {"HTTP/2.0 200 ok\r\n\r\n", -EBADMSG, 0, 0},
                {"HTTP/1.1 20\r\n\r\n", -EBADMSG, 0, 0}, {"HTTP/1.1 2x0 ok\r\n\r\n", -EBADMSG, 0, 0}, {"HTTP/1.1 2000 ok\r\n\r\n", -EBADMSG, 0, 0}, {"HTTP/1.1\r\n\r\n", -EBADMSG, 0, 0},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                unsigned status = 0;
                uint64_t body = 0;

                ssize_t r = answer_parse_head(cases[i].text, strlen(cases[i].text), &status, &body);
                if (r != cases[i].r || status != cases[i].status || body != cases[i].body)
                        test_fail(__FILE__, __LINE__, "\"%s\" gave %zd, %u, %llu", cases[i].text, r, status, (unsigned long long) body);
        }
        _cleanup_free_ char *endless = calloc(ANSWER_HEAD_MAX + 1, 1);
        unsigned status;
        uint64_t body;
        memset(endless, 'x', ANSWER_HEAD_MAX);
        memcpy(endless, "HTTP/1.1 200 ", 13);
        CHECK_INT(answer_parse_head(endless, ANSWER_HEAD_MAX, &status, &body), -EMSGSIZE);
}

int main(void) {
        RUN(test_base64, "base64 as RFC 4648 gives it");
        RUN(test_url, "a proxy's URL is read whole or refused, whatever the password holds");
        RUN(test_environment, "the proxy is the first of the variables that is set");
        RUN(test_authority, "nothing but a host and a port gets into the request");
        RUN(test_answer, "an answer's status and length; what is none is refused");
        return TEST_END();
}
