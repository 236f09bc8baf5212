/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/answers.h"
#include "broker/socks5.h"
#include "test.h"

#define BYTES(s) s, STRLEN(s)

/* Every message is read byte by byte as well: no prefix of a good one is refused or taken for the whole. */

static void test_greeting(void) {
        static const struct {
                const char *data;
                size_t size;
                ssize_t r;
                bool password;
        } cases[] = {
                {BYTES("\x05\x01\x02"), 3, true}, {BYTES("\x05\x02\x00\x02"), 4, true}, {BYTES("\x05\x02\x02\x00rest"), 4, true},
                {BYTES("\x05\x01\x00"), 3, false}, {BYTES("\x05\x03\x00\x01\xff"), 5, false}, {BYTES("\x05\x01\x01\x02"), 3, false},
                {BYTES("\x05\x00"), -EBADMSG, false}, {BYTES("\x05\x00\x02"), -EBADMSG, false}, {BYTES("\x04\x01\x02"), -EBADMSG, false},
                {BYTES("\x00"), -EBADMSG, false}, {BYTES("GET / HTTP/1.1"), -EBADMSG, false},
                {BYTES(""), 0, false}, {BYTES("\x05"), 0, false}, {BYTES("\x05\x01"), 0, false}, {BYTES("\x05\xff\x02\x02"), 0, false},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *problem = NULL;
                bool password = false;

                ssize_t r = socks5_parse_greeting(cases[i].data, cases[i].size, &password, &problem);
                if (r != cases[i].r || password != cases[i].password || (r < 0) != (problem != NULL))
                        test_fail(__FILE__, __LINE__, "greeting %zu gave %zd (%s)", i, r, problem ?: "-");
                for (ssize_t n = 0; n < r; n++)
                        CHECK_INT(socks5_parse_greeting(cases[i].data, (size_t) n, &password, &problem), 0);
        }
}

static void test_credential(void) {
        static const struct {
                const char *data;
                size_t size;
                ssize_t r;
                const char *user, *password;
        } cases[] = {
                {BYTES("\x01\x06" "errand\x03" "abc"), 12, "errand", "abc"}, {BYTES("\x01\x01" "u\x01" "prest"), 5, "u", "p"},
                {BYTES("\x05\x01" "u\x01" "p"), -EBADMSG, NULL, NULL}, {BYTES("\x00\x01" "u\x01" "p"), -EBADMSG, NULL, NULL},
                {BYTES("\x01\x00\x01" "p"), -EBADMSG, NULL, NULL}, {BYTES("\x01\x01" "u\x00"), -EBADMSG, NULL, NULL},
                {BYTES("\x01\x01" "u\x02" "p"), 0, NULL, NULL}, {BYTES("\x01"), 0, NULL, NULL}, {BYTES(""), 0, NULL, NULL},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *problem = NULL;
                Slice user = {}, password = {};

                ssize_t r = socks5_parse_credential(cases[i].data, cases[i].size, &user, &password, &problem);
                if (r != cases[i].r || (r < 0) != (problem != NULL))
                        test_fail(__FILE__, __LINE__, "credential %zu gave %zd (%s)", i, r, problem ?: "-");
                CHECK(r <= 0 ? !user.data && !password.data : slice_is(user, cases[i].user) && slice_is(password, cases[i].password));
                for (ssize_t n = 0; n < r; n++)
                        CHECK_INT(socks5_parse_credential(cases[i].data, (size_t) n, &user, &password, &problem), 0);
        }
}

static void test_request(void) {
        static const struct {
                const char *data;
                size_t size;
                ssize_t r;
                const char *host;
                HostKind kind;
                uint16_t port;
        } cases[] = {
                {BYTES("\x05\x01\x00\x03\x0f" "api.example.com\x01\xbb"), 22, "api.example.com", HOST_NAME, 443},
                {BYTES("\x05\x01\x00\x03\x02" "A.\x00\x16more"), 9, "a", HOST_NAME, 22},
                {BYTES("\x05\x01\x00\x01\x09\x09\x09\x09\xff\xff"), 10, "9.9.9.9", HOST_IPV4, 65535},
                {BYTES("\x05\x01\x00\x01\x00\x00\x00\x00\x00\x50"), 10, "0.0.0.0", HOST_IPV4, 80},
                {BYTES("\x05\x01\x00\x04\x26\x06\x47\x00\0\0\0\0\0\0\0\0\0\0\x00\x02\x01\xbb"), 22, "2606:4700::2", HOST_IPV6, 443},
                {BYTES("\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\x00\x00\x01\x01\xbb"), 22, "::ffff:127.0.0.1", HOST_IPV6, 443},
                {BYTES("\x05\x01\x00\x03\x09" "127.0.0.1\x00\x50"), 16, "127.0.0.1", HOST_IPV4, 80},
                {BYTES("\x05\x01\x00\x03\x03" "::1\x00\x50"), 10, "::1", HOST_IPV6, 80},
                /* other commands and types, as soon as their byte is there */
                {BYTES("\x05\x02"), -EOPNOTSUPP, NULL, 0, 0}, {BYTES("\x05\x03\x00\x01\x09\x09\x09\x09\x00\x50"), -EOPNOTSUPP, NULL, 0, 0},
                {BYTES("\x05\x00"), -EOPNOTSUPP, NULL, 0, 0}, {BYTES("\x05\x01\x00\x02"), -EAFNOSUPPORT, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x00\x09\x09"), -EAFNOSUPPORT, NULL, 0, 0}, {BYTES("\x05\x01\x00\x05"), -EAFNOSUPPORT, NULL, 0, 0},
                /* malformed */
                {BYTES("\x04\x01"), -EBADMSG, NULL, 0, 0}, {BYTES("\x05\x01\x01\x01\x09\x09\x09\x09\x00\x50"), -EBADMSG, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x03\x00"), -EBADMSG, NULL, 0, 0}, {BYTES("\x05\x01\x00\x03\x03" "a\0b\x00\x50"), -EBADMSG, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x03\x04" "a:80\x00\x50"), -EBADMSG, NULL, 0, 0}, {BYTES("\x05\x01\x00\x03\x05" "[::1]\x00\x50"), -EBADMSG, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x03\x03" "1.2\x00\x50"), -EBADMSG, NULL, 0, 0}, {BYTES("\x05\x01\x00\x03\x04" "0x7f\x00\x50"), -EBADMSG, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x03\x03" "a/b\x00\x50"), -EBADMSG, NULL, 0, 0}, {BYTES("\x05\x01\x00\x03\x03" "u@h\x00\x50"), -EBADMSG, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x03\x03" "a\r\n\x00\x50"), -EBADMSG, NULL, 0, 0}, {BYTES("\x05\x01\x00\x03\x02" "\xc3\xa4\x00\x50"), -EBADMSG, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x03\x01" "a\x00\x00"), -ERANGE, NULL, 0, 0}, {BYTES("\x05\x01\x00\x01\x09\x09\x09\x09\x00\x00"), -ERANGE, NULL, 0, 0},
                {BYTES(""), 0, NULL, 0, 0}, {BYTES("\x05\x01\x00\x03"), 0, NULL, 0, 0}, {BYTES("\x05\x01\x00\x03\x01" "a\x00"), 0, NULL, 0, 0},
                {BYTES("\x05\x01\x00\x04\x26\x06\x47\x00\0\0\0\0\0\0\0\0\0\0\x00\x02\x01"), 0, NULL, 0, 0},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *problem = NULL;
                uint16_t port = 7;
                Host host = {.name = "untouched"};

                ssize_t r = socks5_parse_request(cases[i].data, cases[i].size, &host, &port, &problem);
                if (r != cases[i].r || (r < 0) != (problem != NULL))
                        test_fail(__FILE__, __LINE__, "request %zu gave %zd (%s)", i, r, problem ?: "-");
                CHECK_STR(host.name, r > 0 ? cases[i].host : "untouched");
                CHECK_INT(port, r > 0 ? cases[i].port : 7);
                if (r > 0)
                        CHECK_INT(host.kind, cases[i].kind);
                for (ssize_t n = 0; n < r; n++)
                        CHECK_INT(socks5_parse_request(cases[i].data, (size_t) n, &host, &port, &problem), 0);
        }
}

static void test_long_name(void) {
        char data[4 + 1 + 255 + 2] = "\x05\x01\x00\x03\xff";
        const char *problem = NULL;
        uint16_t port;
        Host host;

        /* 255 bytes fit the message, but no name: 253 is the most. */
        memset(data + 5, 'a', 255);
        for (size_t i = 50; i < 255; i += 50)
                data[5 + i] = '.';
        data[5 + 255] = 1;
        CHECK_INT(socks5_parse_request(data, sizeof(data), &host, &port, &problem), -EBADMSG);
        CHECK_STR(problem, "the host is longer than 253 bytes");
        data[4] = (char) 253;
        data[5 + 253] = 1;
        CHECK_INT(socks5_parse_request(data, sizeof(data), &host, &port, &problem), 260);
        CHECK_INT(strlen(host.name), 253);
}

static void test_replies(void) {
        static const struct {
                Answer answer;
                unsigned reply;
        } cases[] = {
                {ANSWER_PORT, 2}, {ANSWER_NOT_GRANTED, 2}, {ANSWER_NOT_PUBLIC, 2}, {ANSWER_NOT_RESOLVED, 4}, {ANSWER_RESOLVE_TIMEOUT, 4},
                {ANSWER_UNREACHABLE, 5}, {ANSWER_GRANT_NOT_RECORDED, 1}, {ANSWER_TOO_MANY, 1}, {ANSWER_INTERNAL, 1},
        };
        char buffer[SOCKS5_REPLY_SIZE];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                socks5_format_reply(answer_to_socks5(cases[i].answer), buffer);
                CHECK_INT(buffer[1], cases[i].reply);
                CHECK(buffer[0] == 5 && memcmp(buffer + 2, "\0\1\0\0\0\0\0", 8) == 0);
        }
        for (Answer a = 0; a < _ANSWER_MAX; a++)
                CHECK(answer_to_socks5(a) != SOCKS5_SUCCEEDED);
        CHECK(SOCKS5_COMMAND == 7 && SOCKS5_ADDRESS_TYPE == 8);
}

int main(void) {
        RUN(test_greeting, "a greeting is read whole or refused, and shows whether a password is offered");
        RUN(test_credential, "a credential has a user and a password, neither of them empty");
        RUN(test_request, "C115: a request is a CONNECT to a host of the one grammar, a port and nothing else");
        RUN(test_long_name, "C115: a name over 253 bytes is refused");
        RUN(test_replies, "each refusal has its reply, and none of them is that of success");
        return TEST_END();
}
