/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/http1.h"
#include "test.h"

#define SIZE(s) (sizeof(s) - 1)
#define BYTES(s) (s), SIZE(s)

typedef struct Case {
        const char *data;
        size_t size;
} Case;
#define CASE(s) {BYTES(s)}

static int parse(const char *data, size_t size, bool response, Http1Head *ret) {
        const char *problem = NULL;
        int r = response ? http1_parse_response(data, size, ret, &problem) : http1_parse_request(data, size, ret, &problem);

        /* A failure has words for it; they are ASCII and end up in a body, so no line end. */
        CHECK((r < 0) == (problem != NULL));
        CHECK(!problem || (strlen(problem) > 10 && !strpbrk(problem, "\r\n")));
        return r;
}

static void all_refused(const Case *cases, size_t n, bool response, int expected) {
        Http1Head h;

        for (size_t i = 0; i < n; i++) {
                int r = parse(cases[i].data, cases[i].size, response, &h);
                if (r != expected)
                        test_fail(__FILE__, __LINE__, "case %zu (%s) gave %d", i, cases[i].data, r);
        }
}
#define REFUSED(cases, response) all_refused(cases, ELEMENTSOF(cases), response, -EBADMSG)

/* The parser is asked about heads that differ from a good one in the given field lines only. */
static void fields_refused(const Case *cases, size_t n, bool responses_too) {
        char buffer[2048];
        Http1Head h;

        for (size_t i = 0; i < n; i++)
                for (int response = 0; response < (responses_too ? 2 : 1); response++)
                        for (int first = 0; first < 2; first++) {
                                const char *start = response ? "HTTP/1.1 200 OK\r\n" : "POST http://h/a HTTP/1.1\r\n";
                                char *p = stpcpy(stpcpy(buffer, start), first ? "" : "Host: h\r\n");
                                p = mempcpy(p, cases[i].data, cases[i].size);
                                p = stpcpy(stpcpy(p, first ? "Host: h\r\n" : ""), "\r\n");
                                int r = parse(buffer, (size_t) (p - buffer), response, &h);
                                if (r != -EBADMSG)
                                        test_fail(__FILE__, __LINE__, "field case %zu (%s) gave %d", i, cases[i].data, r);
                        }
}

static const Http1Field *field(const Http1Head *h, const char *name, const char *value) {
        const Http1Field *f = http1_find(h, name);
        CHECK(f && slice_is(f->value, value));
        return f;
}

static void test_request(void) {
        static const char text[] = "GET http://api.example.com/a?b=c HTTP/1.1\r\nHost: api.example.com\r\nX-Empty:\r\nX-Wide: \t a b\t \r\n"
                                   "x-obs: \xe9t\xe9\r\nAccept: */*\r\naccept: text/html\r\n\r\n";
        Http1Head h;

        CHECK_INT(http1_find_head_end(BYTES(text), NULL), SIZE(text));
        CHECK_INT(parse(BYTES(text), false, &h), 0);
        CHECK(!h.is_response && h.minor == 1 && h.n_fields == 6);
        CHECK(slice_is(h.method, "GET") && slice_is(h.target, "http://api.example.com/a?b=c"));
        CHECK(h.framing == HTTP1_BODY_NONE && !h.has_content_length && h.keep_alive && !h.expect_continue && !h.has_upgrade);
        field(&h, "x-empty", "");
        field(&h, "x-wide", "a b");
        field(&h, "X-OBS", "\xe9t\xe9");
        field(&h, "accept", "*/*");
        CHECK_INT(http1_count(&h, "ACCEPT"), 2);
        CHECK(!http1_find(&h, "accep") && http1_count(&h, "accepts") == 0);
}

static void test_response(void) {
        static const char text[] = "HTTP/1.1 404 Not  Found \xff\r\nContent-Length: 0\r\n\r\n";
        Http1Head h;

        CHECK_INT(parse(BYTES(text), true, &h), 0);
        CHECK(h.is_response && h.status == 404 && slice_is(h.reason, "Not  Found \xff"));
        CHECK(h.framing == HTTP1_BODY_LENGTH && h.has_content_length && h.content_length == 0);
        CHECK_INT(parse(BYTES("HTTP/1.0 200 \r\n\r\n"), true, &h), 0);
        CHECK(h.reason.size == 0 && h.framing == HTTP1_BODY_CLOSE && !h.keep_alive && h.n_fields == 0);
}

static void test_head_end(void) {
        static const char text[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\nBODY\r\n\r\n";
        size_t end = SIZE(text) - STRLEN("BODY\r\n\r\n");

        /* From every cut to every later one, with what is remembered in between. */
        for (size_t first = 0; first <= SIZE(text); first++)
                for (size_t second = first; second <= SIZE(text); second++) {
                        size_t scanned = 0;
                        CHECK_INT(http1_find_head_end(text, first, &scanned), first >= end ? end : 0);
                        CHECK(scanned <= first);
                        CHECK_INT(http1_find_head_end(text, second, &scanned), second >= end ? end : 0);
                        CHECK_INT(http1_find_head_end(text, second, &scanned), second >= end ? end : 0);
                }
}

static void test_head_limits(void) {
        _cleanup_free_ char *big = malloc(HTTP1_HEAD_MAX + 100);
        size_t scanned = 0;
        Http1Head h;

        /* exactly the limit passes, one more byte does not */
        memset(big, 'a', HTTP1_HEAD_MAX + 100);
        memcpy(big, BYTES("GET / HTTP/1.1\r\nHost: h\r\nX: "));
        memcpy(big + HTTP1_HEAD_MAX - 4, "\r\n\r\n", 4);
        CHECK_INT(http1_find_head_end(big, HTTP1_HEAD_MAX, NULL), HTTP1_HEAD_MAX);
        CHECK_INT(http1_find_head_end(big, HTTP1_HEAD_MAX + 100, NULL), HTTP1_HEAD_MAX);
        CHECK_INT(parse(big, HTTP1_HEAD_MAX, false, &h), 0);
        memcpy(big + HTTP1_HEAD_MAX - 4, "a\r\n\r\n", 5);
        CHECK_INT(http1_find_head_end(big, HTTP1_HEAD_MAX - 1, &scanned), 0);
        CHECK_INT(http1_find_head_end(big, HTTP1_HEAD_MAX, &scanned), -EMSGSIZE);
        CHECK_INT(http1_find_head_end(big, HTTP1_HEAD_MAX + 1, &scanned), -EMSGSIZE);
        CHECK_INT(parse(big, HTTP1_HEAD_MAX + 1, false, &h), -EMSGSIZE);

        char *p = stpcpy(big, "GET / HTTP/1.1\r\nHost: h\r\n");
        for (size_t i = 1; i < HTTP1_FIELDS_MAX; i++)
                p = stpcpy(p, "A: b\r\n");
        strcpy(p, "\r\n");
        CHECK_INT(parse(big, strlen(big), false, &h), 0);
        CHECK_INT(h.n_fields, HTTP1_FIELDS_MAX);
        strcpy(p, "A: b\r\n\r\n");
        CHECK_INT(parse(big, strlen(big), false, &h), -EMSGSIZE);
}

static void test_head_start(void) {
        static const Case bad[] = {
                CASE("\r\nGET / HTTP/1.1\r\n\r\n"), CASE("\nGET"), CASE(" GET"), CASE("\x16\x03\x01"), CASE("\x05\x01\x02"),
                CASE("\0"), CASE("\xffGET"), CASE("GET / HTTP/1.1\nHost: h\n\n"), CASE("GET / HTTP/1.1\r\nHost: h\n\r\n"),
                CASE("GET / HTTP/1.1\r\nHost: h\r\n\n"), CASE("GET / HTTP/1.1\r\n\n"),
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                CHECK_INT(http1_find_head_end(bad[i].data, bad[i].size, NULL), -EBADMSG);
        CHECK_INT(http1_find_head_end("", 0, NULL), 0);
        CHECK_INT(http1_find_head_end("G", 1, NULL), 0);
}

static void test_request_lines(void) {
#define AFTER "\r\nHost: h\r\n\r\n"
        static const Case bad[] = {
                CASE("GET" AFTER), CASE("GET /" AFTER), CASE("GET / HTTP/1.1 " AFTER), CASE("GET  / HTTP/1.1" AFTER),
                CASE("GET /  HTTP/1.1" AFTER), CASE("GET\t/ HTTP/1.1" AFTER), CASE("GET / a HTTP/1.1" AFTER), CASE(" GET / HTTP/1.1" AFTER),
                CASE("GET  HTTP/1.1" AFTER), CASE("G@T / HTTP/1.1" AFTER), CASE("G\xc9T / HTTP/1.1" AFTER), CASE("(GET) / HTTP/1.1" AFTER),
                CASE("GET /\x01 HTTP/1.1" AFTER), CASE("GET /\x7f HTTP/1.1" AFTER), CASE("GET /\xc3\xa9 HTTP/1.1" AFTER),
                CASE("GET /\ta HTTP/1.1" AFTER), CASE("GET /\0a HTTP/1.1" AFTER), CASE("GET /\ra HTTP/1.1" AFTER), CASE("GET / HTTP/1.1\r" AFTER),
                CASE("GET / http/1.1" AFTER), CASE("GET / HTTP/1.2" AFTER), CASE("GET / HTTP/2.0" AFTER), CASE("GET / HTTP/0.9" AFTER),
                CASE("GET / HTTP/1.01" AFTER), CASE("GET / HTTP/01.1" AFTER), CASE("GET / HTTP/1." AFTER), CASE("GET / HTTP/1,1" AFTER),
                CASE("GET / HTTP/11" AFTER), CASE("GET / HTTP/1.1HTTP/1.1" AFTER), CASE("GET / \tHTTP/1.1" AFTER), CASE("GET / HTTPS/1.1" AFTER),
                CASE("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1" AFTER), CASE("\r\n\r\n"), CASE(""), CASE("GET / HTTP/1.1"),
                CASE("GET / HTTP/1.1\r\nHost: h\r\n"), CASE("GET / HTTP/1.1\r\nHost: h\r\n\r\nx"), CASE("GET / HTTP/1.1\r\nHost: h\r\n\r\n\r\n"),
        };
        static const char *const good[] = {
                "GET / HTTP/1.1" AFTER, "get * HTTP/1.0" AFTER, "CONNECT api.example.com:443 HTTP/1.1" AFTER,
                "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.1" AFTER, "M-SEARCH http://a/!\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~ HTTP/1.1" AFTER,
        };
        Http1Head h;

        REFUSED(bad, false);
        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                CHECK_INT(parse(good[i], strlen(good[i]), false, &h), 0);
}

static void test_status_lines(void) {
        static const Case bad[] = {
                CASE("HTTP/1.1 200\r\n\r\n"), CASE("HTTP/1.1  200 OK\r\n\r\n"), CASE("HTTP/1.1 200  \x01\r\n\r\n"), CASE("HTTP/1.1 2000 OK\r\n\r\n"),
                CASE("HTTP/1.1 20 OK\r\n\r\n"), CASE("HTTP/1.1 +20 OK\r\n\r\n"), CASE("HTTP/1.1 099 OK\r\n\r\n"), CASE("HTTP/1.1 600 OK\r\n\r\n"),
                CASE("HTTP/1.1 2x0 OK\r\n\r\n"), CASE("HTTP/2.0 200 OK\r\n\r\n"), CASE("HTTP/1.1\t200 OK\r\n\r\n"), CASE("HTTP/1.1 200\tOK\r\n\r\n"),
                CASE("HTTP/1.1 200 a\rb\r\n\r\n"), CASE("HTTP/1.1 200 a\0b\r\n\r\n"), CASE("http/1.1 200 OK\r\n\r\n"), CASE(" HTTP/1.1 200 OK\r\n\r\n"),
                CASE("ICY 200 OK\r\n\r\n"), CASE("HTTP/1.1 200 OK\n\n"), CASE("HTTP/1.1 200 OK\r\nA: b\n\r\n"), CASE("HTTP/1.1 200 OK\n\r\n"),
        };
        Http1Head h;

        REFUSED(bad, true);
        CHECK_INT(parse(BYTES("HTTP/1.1 100 \r\n\r\n"), true, &h), 0);
        CHECK_INT(parse(BYTES("HTTP/1.1 599 x\r\n\r\n"), true, &h), 0);
        CHECK_INT(h.status, 599);
}

static void test_both_lengths(void) {
        static const Case bad[] = {
                CASE("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n"), CASE("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n"),
                CASE("TRANSFER-ENCODING: chunked\r\ncontent-length: 0\r\n"), CASE("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
                CASE("Transfer-Encoding: chunked, chunked\r\n"), CASE("Transfer-Encoding: gzip, chunked\r\n"), CASE("Transfer-Encoding: identity\r\n"),
                CASE("Transfer-Encoding: chunked, identity\r\n"), CASE("Transfer-Encoding: xchunked\r\n"), CASE("Transfer-Encoding: chunked;a=b\r\n"),
                CASE("Transfer-Encoding: \"chunked\"\r\n"), CASE("Transfer-Encoding:\r\n"), CASE("Transfer-Encoding: ,chunked\r\n"),
                CASE("Transfer-Encoding: chunked,\r\n"), CASE("Transfer-Encoding: chunk\r\n"), CASE("Transfer-Encoding: chunked\x0b\r\n"),
                CASE("Transfer-Encoding: \xa0" "chunked\r\n"), CASE("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
        };
        static const Case old[] = {
                CASE("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
                CASE("POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"),
        };
        static const Case old_response[] = {CASE("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")};
        Http1Head h;

        fields_refused(bad, ELEMENTSOF(bad), true);
        REFUSED(old, false);
        REFUSED(old_response, true);
        CHECK_INT(parse(BYTES("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \tChunked \r\n\r\n"), false, &h), 0);
        CHECK(h.framing == HTTP1_BODY_CHUNKED && !h.has_content_length);
}

static void test_content_length(void) {
        static const Case bad[] = {
                CASE("Content-Length: 5\r\nContent-Length: 50\r\n"), CASE("Content-Length: 5\r\ncontent-length: 5\r\n"), CASE("Content-Length: 5, 5\r\n"),
                CASE("Content-Length: 5,5\r\n"), CASE("Content-Length: +5\r\n"), CASE("Content-Length: -1\r\n"), CASE("Content-Length: 0x5\r\n"),
                CASE("Content-Length: 5 5\r\n"), CASE("Content-Length: 99999999999999999999\r\n"), CASE("Content-Length: 18446744073709551616\r\n"),
                CASE("Content-Length: 9223372036854775808\r\n"), CASE("Content-Length: 05\r\n"), CASE("Content-Length: 00\r\n"),
                CASE("Content-Length:\r\n"), CASE("Content-Length: \r\n"), CASE("Content-Length: 5.0\r\n"), CASE("Content-Length: 5;\r\n"),
                CASE("Content-Length: 1e3\r\n"), CASE("Content-Length: \"5\"\r\n"), CASE("Content-Length: \x0b" "5\r\n"), CASE("Content-Length: \xa0" "5\r\n"),
                CASE("Content-Length: 5\r\nContent-Length:\r\n"), CASE("Content-Length: five\r\n"),
        };
        Http1Head h;

        fields_refused(bad, ELEMENTSOF(bad), true);
        CHECK_INT(parse(BYTES("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775807\r\n\r\n"), false, &h), 0);
        CHECK(h.framing == HTTP1_BODY_LENGTH && h.content_length == INT64_MAX);
        CHECK_INT(parse(BYTES("POST / HTTP/1.0\r\nContent-Length:\t17 \r\n\r\n"), false, &h), 0);
        CHECK(h.framing == HTTP1_BODY_LENGTH && h.content_length == 17);
}

static void test_odd_names(void) {
        static const Case bad[] = {
                CASE("Content-Length : 5\r\n"), CASE("Content-Length\t: 5\r\n"), CASE("Content-Length\xa0: 5\r\n"), CASE("Content-Length\x85: 5\r\n"),
                CASE("Content-Length\x0b: 5\r\n"), CASE(": 5\r\n"), CASE(" X: 5\r\n"), CASE("\tX: 5\r\n"), CASE("X: a\r\n b\r\n"), CASE("X: a\r\n\tb\r\n"),
                CASE(" \r\n"), CASE("X\r\n"), CASE("no colon here\r\n"), CASE("X@Y: 5\r\n"), CASE("X(Y): 5\r\n"), CASE("\"X\": 5\r\n"), CASE("X\0: 5\r\n"),
                CASE("\xc3\xa9: 5\r\n"), CASE("X\x7f: 5\r\n"), CASE("X,Y: 5\r\n"), CASE("X/Y: 5\r\n"), CASE("[X]: 5\r\n"), CASE("{X}: 5\r\n"), CASE("X\\: 5\r\n"),
        };
        static const Case underscores[] = {CASE("Content_Length: 5\r\n"), CASE("Transfer_Encoding: chunked\r\n"), CASE("_: 5\r\n"), CASE("X_Y: 5\r\n")};
        Http1Head h;

        fields_refused(bad, ELEMENTSOF(bad), true);
        fields_refused(underscores, ELEMENTSOF(underscores), false);
        CHECK_INT(parse(BYTES("HTTP/1.1 200 OK\r\nX_Y: 5\r\n\r\n"), true, &h), 0);
        CHECK_INT(parse(BYTES("GET / HTTP/1.1\r\nHost: h\r\n!#$%&'*+-.^`|~09azAZ: :x:\r\n\r\n"), false, &h), 0);
        field(&h, "!#$%&'*+-.^`|~09AZaz", ":x:");
}

static void test_controls(void) {
        static const Case bad[] = {
                CASE("Foo: x\nContent-Length: 39\r\n"), CASE("Foo: a\rb\r\n"), CASE("Foo: a\0b\r\n"), CASE("Foo: a\r\r\n"), CASE("Foo: \x7f\r\n"),
                CASE("Foo: a\x1b[2J\r\n"), CASE("Foo: \x0b\r\n"), CASE("Foo: \x0c\r\n"), CASE("Foo\r: a\r\n"), CASE("Foo\n: a\r\n"), CASE("\rFoo: a\r\n"),
        };
        Http1Head h;
        char text[] = "GET / HTTP/1.1\r\nHost: h\r\nA: x?y\r\n\r\n", *at = strchr(text, '?');

        fields_refused(bad, ELEMENTSOF(bad), true);
        /* every byte inside a value */
        for (unsigned c = 0; c < 256; c++) {
                *at = (char) c;
                bool allowed = c == '\t' || (c >= 0x20 && c != 0x7f);
                CHECK_INT(parse(BYTES(text), false, &h), allowed ? 0 : -EBADMSG);
        }
}

static void test_host(void) {
        static const Case bad[] = {
                CASE("GET http://a/ HTTP/1.1\r\n\r\n"), CASE("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
                CASE("GET http://a/ HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n"), CASE("GET http://a/ HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
        };
        Http1Head h;

        REFUSED(bad, false);
        CHECK_INT(parse(BYTES("GET http://a/ HTTP/1.0\r\n\r\n"), false, &h), 0);
        CHECK_INT(parse(BYTES("GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n"), false, &h), 0);
}

static void test_keep_alive(void) {
        static const struct {
                unsigned minor;
                const char *lines;
                bool keep;
        } cases[] = {
                {1, "", true},
                {0, "", false},
                {1, "Connection: close\r\n", false},
                {0, "Connection: keep-alive\r\n", true},
                {0, "Connection: Keep-Alive\r\n", true},
                {1, "Connection: X-A, CLOSE\r\n", false},
                {0, "Connection: keep-alive\r\nConnection: close\r\n", false},
                {1, "Connection: keep-alive, close\r\n", false},
                {1, "Connection: closed\r\n", true},
                {1, "Connection: ,, \t,\r\n", true},
                {1, "Connection:\r\n", true},
                {0, "Proxy-Connection: keep-alive\r\n", false},
        };
        char text[256];
        Http1Head h;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (int response = 0; response < 2; response++) {
                        (void) snprintf(text, sizeof(text), response ? "HTTP/1.%u 200 OK\r\n%s\r\n" : "GET / HTTP/1.%u\r\nHost: h\r\n%s\r\n",
                                        cases[i].minor, cases[i].lines);
                        CHECK_INT(parse(text, strlen(text), response, &h), 0);
                        CHECK_INT(h.keep_alive, cases[i].keep);
                }
}

static void test_hop_by_hop(void) {
        static const char text[] =
                "GET / HTTP/1.1\r\nHost: h\r\nConnection: Connection, close, X-A, keep-alive\r\nconnection: x-b ,,x-c\r\n"
                "Proxy-Connection: keep-alive\r\npRoXy-AuThOrIzAtIoN: Basic eA==\r\nProxy-Authorization: Basic eQ==\r\nProxy-New: 1\r\nTE: trailers\r\n"
                "Trailer: x\r\nUpgrade: h2c\r\nKeep-Alive: timeout=5\r\nX-A: 1\r\nX-B: 1\r\nx-c: 1\r\nX-D: 1\r\nX-AA: 1\r\nX: 1\r\n"
                "Authorization: Bearer x\r\nproxy: 1\r\nClose: 1\r\n\r\n";
        static const char *const kept[] = {"host", "x-d", "x-aa", "x", "authorization", "proxy"};
        Http1Head h;
        size_t n = 0;

        CHECK_INT(parse(BYTES(text), false, &h), 0);
        CHECK(h.has_upgrade && !h.keep_alive);
        for (size_t i = 0; i < h.n_fields; i++) {
                bool keep = false;
                for (size_t k = 0; k < ELEMENTSOF(kept); k++)
                        keep = keep || ascii_case_equal(h.fields[i].name.data, h.fields[i].name.size, kept[k]);
                CHECK_INT(http1_is_hop_by_hop(&h, &h.fields[i]), !keep);
                n += keep;
        }
        CHECK_INT(n, ELEMENTSOF(kept));

        static const Case bad[] = {CASE("Connection: a b\r\n"), CASE("Connection: \"close\"\r\n"), CASE("Connection: close;\r\n"),
                                   CASE("Connection: cl\xf6se\r\n"), CASE("Connection: a=b\r\n")};
        fields_refused(bad, ELEMENTSOF(bad), true);
        CHECK_INT(parse(BYTES("GET / HTTP/1.1\r\nHost: h\r\nConnection: Connection\r\n\r\n"), false, &h), 0);
        CHECK(http1_is_hop_by_hop(&h, &h.fields[1]));
}

static void test_connection_bound(void) {
        char text[4096], *p = stpcpy(text, "GET / HTTP/1.1\r\nHost: h\r\nConnection: ");
        Http1Head h;

        memset(p, ',', 1024);
        strcpy(p + 1024, "\r\n\r\n");
        CHECK_INT(parse(text, strlen(text), false, &h), 0);
        strcpy(p + 1024, "\r\nConnection: a\r\n\r\n");
        CHECK_INT(parse(text, strlen(text), false, &h), -EMSGSIZE);
        for (size_t n = 32; n <= 33; n++) {
                char *q = p;
                for (size_t i = 0; i < n; i++)
                        q = stpcpy(q, i ? ",a" : "a");
                strcpy(q, "\r\n\r\n");
                CHECK_INT(parse(text, strlen(text), false, &h), n > 32 ? -EMSGSIZE : 0);
        }
}

static void test_upgrade(void) {
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        Http1Head h;

        ssize_t n = http1_find_head_end(BYTES(preface), NULL);
        CHECK_INT(n, 18);
        CHECK_INT(parse(preface, (size_t) n, false, &h), -EBADMSG);
        CHECK_INT(parse(BYTES("GET / HTTP/1.1\r\nHost: h\r\nupgrade: websocket\r\n\r\n"), false, &h), 0);
        CHECK(h.has_upgrade);
        CHECK_INT(parse(BYTES("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n"), true, &h), 0);
        CHECK(h.has_upgrade && h.status == 101 && h.framing == HTTP1_BODY_NONE);
}

static void test_expect(void) {
        static const Case bad[] = {CASE("Expect: 200-ok\r\n"), CASE("Expect: 100-continue, a\r\n"), CASE("Expect:\r\n"),
                                   CASE("Expect: 100-continue\r\nExpect: 100-continue\r\n")};
        Http1Head h;

        fields_refused(bad, ELEMENTSOF(bad), false);
        CHECK_INT(parse(BYTES("PUT / HTTP/1.1\r\nHost: h\r\nexpect: 100-Continue\r\n\r\n"), false, &h), 0);
        CHECK(h.expect_continue);
        CHECK_INT(parse(BYTES("PUT / HTTP/1.0\r\nHost: h\r\nexpect: 100-Continue\r\n\r\n"), false, &h), 0);
        CHECK(!h.expect_continue);
}

static void test_connect_body(void) {
        static const char text[] = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\nContent-Length: 10\r\n\r\n0123456789";
        Http1Head h;

        ssize_t n = http1_find_head_end(BYTES(text), NULL);
        CHECK_INT(n, SIZE(text) - 10);
        CHECK_INT(parse(text, (size_t) n, false, &h), 0);
        CHECK(h.framing == HTTP1_BODY_LENGTH && h.content_length == 10);
}

static void test_response_framing(void) {
        static const struct {
                const char *text;
                int r;
                Http1Framing framing, framing_head;
        } cases[] = {
                {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", 0, HTTP1_BODY_LENGTH, HTTP1_BODY_NONE},
                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, HTTP1_BODY_CHUNKED, HTTP1_BODY_NONE},
                {"HTTP/1.1 200 OK\r\n\r\n", 0, HTTP1_BODY_CLOSE, HTTP1_BODY_NONE},
                {"HTTP/1.1 204 No\r\n\r\n", 0, HTTP1_BODY_NONE, HTTP1_BODY_NONE},
                {"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", 0, HTTP1_BODY_NONE, HTTP1_BODY_NONE},
                {"HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\n", -EBADMSG, 0, 0},
                {"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", -EBADMSG, 0, 0},
                {"HTTP/1.1 100 Go\r\nContent-Length: 9\r\n\r\n", -EBADMSG, 0, 0},
                {"HTTP/1.1 304 No\r\nContent-Length: 99\r\n\r\n", 0, HTTP1_BODY_NONE, HTTP1_BODY_NONE},
                {"HTTP/1.1 103 Hints\r\n\r\n", 0, HTTP1_BODY_NONE, HTTP1_BODY_NONE},
        };
        Http1Head h;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CHECK_INT(parse(cases[i].text, strlen(cases[i].text), true, &h), cases[i].r);
                if (cases[i].r < 0)
                        continue;
                CHECK_INT(http1_response_framing(&h, false), cases[i].framing);
                CHECK_INT(http1_response_framing(&h, true), cases[i].framing_head);
        }
}

/* Decodes with cuts after every `step` bytes. Returns the consumed bytes, or an error, or 0 when it wants more. */
static ssize_t decode(const char *data, size_t size, size_t step, char *out, size_t *ret_size) {
        Http1Chunked c = {};
        size_t done = 0, n_out = 0;

        for (size_t end = MIN(step, size); !c.done; end = MIN(end + step, size)) {
                while (done < end && !c.done) {
                        Slice piece;
                        ssize_t n = http1_chunked_next(&c, data + done, end - done, &piece);
                        if (n < 0) {
                                CHECK_INT(http1_chunked_next(&c, "0\r\n\r\n", 5, &piece), -EBADMSG); /* it stays broken */
                                return n;
                        }
                        CHECK(n > 0 && (size_t) n <= end - done);
                        CHECK(piece.size == 0 || (piece.data >= data + done && piece.data + piece.size <= data + done + n));
                        memcpy(out + n_out, piece.data ?: "", piece.size);
                        n_out += piece.size;
                        done += (size_t) n;
                }
                if (done == size)
                        break;
        }
        *ret_size = n_out;
        if (!c.done)
                return 0;
        Slice piece;
        CHECK_INT(http1_chunked_next(&c, "x", 1, &piece), 0);
        return (ssize_t) done;
}

static void chunked_case(const char *data, size_t size, ssize_t expected, const char *payload) {
        char out[65536];
        size_t n;

        for (size_t step = 1; step <= size; step++) {
                ssize_t r = decode(data, size, step, out, &n);
                if (r != expected)
                        test_fail(__FILE__, __LINE__, "%s in steps of %zu gave %zd", data, step, r);
                if (payload)
                        CHECK(n == strlen(payload) && memcmp(out, payload, n) == 0);
        }
}

static void test_chunked_good(void) {
        static const struct {
                const char *data;
                const char *payload;
        } cases[] = {
                {"0\r\n\r\n", ""},
                {"5\r\nhello\r\n0\r\n\r\n", "hello"},
                {"5\r\nhello\r\nA\r\n0123456789\r\n1\r\n\n\r\n0\r\n\r\n", "hello0123456789\n"},
                {"a\r\n0\r\n\r\n56789\r\n0\r\n\r\n", "0\r\n\r\n56789"},
                {"9\r\n123456789\r\nf\r\n123456789abcdef\r\nF\r\n123456789abcdef\r\n0\r\n\r\n", "123456789123456789abcdef123456789abcdef"},
                {"0\r\n!#$%&'*+-.^_`|~059azAZ:\t\x20\x80\xff\r\n0:\r\n9:\r\na:\r\nz:\r\nA:\r\nZ:\r\n\r\n", ""},
                {"00000000000005\r\nhello\r\n000\r\n\r\n", "hello"},
                {"5;a=b;c=\"d e\"\t\r\nhello\r\n0;last\r\n\r\n", "hello"},
                {"1\r\nx\r\n0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nHost: x\r\nAuthorization: y\r\nX_Y:\r\n\r\n", "x"},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                chunked_case(cases[i].data, strlen(cases[i].data), (ssize_t) strlen(cases[i].data), cases[i].payload);
                /* Cut anywhere, it waits for more; what follows is not consumed. */
                for (size_t n = 1; n < strlen(cases[i].data); n++)
                        chunked_case(cases[i].data, n, 0, NULL);
                char text[256];
                (void) snprintf(text, sizeof(text), "%s%s", cases[i].data, "GET / HTTP/1.1\r\n");
                chunked_case(text, strlen(text), (ssize_t) strlen(cases[i].data), cases[i].payload);
        }
}

static void test_chunked_bad(void) {
        static const Case bad[] = {
                CASE("FFFFFFFFFFFFFFFF\r\n"), CASE("10000000000000000\r\n"), CASE("8000000000000000\r\n"), CASE("1000000000000000\r\n"),
                CASE("-1\r\n"), CASE("+1\r\n"), CASE("0x5\r\nhello\r\n"), CASE(" 5\r\nhello\r\n"), CASE("5 ;a\r\nhello\r\n"), CASE("5 \r\nhello\r\n"),
                CASE("5\nhello\r\n"), CASE("5\rhello"), CASE("5;a\nhello"), CASE("5;a\r\r\nhello"), CASE("5;\0\r\nhello"), CASE("5;\x7f\r\n"), CASE("5;\xe9\r\n"), CASE("5;\x80\r\n"), CASE("G\r\n"), CASE(":5\r\n"), CASE("/5\r\n"), CASE("@5\r\n"), CASE("`5\r\n"),
                CASE("5\r\nhelloworld"), CASE("5\r\nhello\n0\r\n\r\n"), CASE("5\r\nhello\r0\r\n\r\n"), CASE("5\r\nhello\rX"), CASE("\r\n"), CASE("\n"),
                CASE(";a\r\n"), CASE("g\r\n"), CASE("5_0\r\n"), CASE("5\r\nhello\r\n\r\n"), CASE("0\r\n\n"), CASE("0\n\r\n"), CASE("0\n\n"), CASE("0\r\n\rX"),
                CASE("0\r\nX\r\n\r\n"), CASE("0\r\n: x\r\n\r\n"), CASE("0\r\n X: y\r\n\r\n"), CASE("0\r\nX : y\r\n\r\n"), CASE("0\r\nX: y\n\r\n"),
                CASE("0\r\nX: y\r\n z\r\n\r\n"), CASE("0\r\nX: a\0b\r\n\r\n"), CASE("0\r\nX: a\rb\r\n\r\n"), CASE("0\r\n\xe9: a\r\n\r\n"), CASE("0\r\nGET / HTTP/1.1\r\n"),
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                chunked_case(bad[i].data, bad[i].size, -EBADMSG, NULL);
}

static void test_chunked_bounds(void) {
        _cleanup_free_ char *text = malloc(1 << 20), *out = malloc(1 << 20);
        size_t n;

        /* the line with its CR LF: exactly the limit, and one more */
        for (size_t extra = 0; extra < 2; extra++) {
                size_t size = HTTP1_CHUNK_LINE_MAX + extra;
                memset(text, 'x', size);
                memcpy(text, "0;", 2);
                memcpy(text + size - 2, "\r\n\r\n", 4);
                CHECK_INT(decode(text, size + 2, 7, out, &n), extra ? -EBADMSG : (ssize_t) size + 2);
        }
        for (size_t extra = 0; extra < 2; extra++) {
                size_t size = HTTP1_TRAILER_MAX + extra;
                memcpy(text, "0\r\nX:", 5);
                memset(text + 5, 'x', size);
                memcpy(text + 3 + size - 4, "\r\n\r\n", 4);
                CHECK_INT(decode(text, 3 + size, 7, out, &n), extra ? -EBADMSG : (ssize_t) (3 + size));
        }
        memset(text, 'x', 1 << 20);
        memcpy(text, "5;", 2);
        CHECK_INT(decode(text, 1 << 20, 4096, out, &n), -EBADMSG);
}

static void test_chunked_pieces(void) {
        Http1Chunked c = {};
        static const char text[] = "40000000\r\nabc";
        Slice piece;

        /* A piece leaves as it comes; nothing waits for the chunk's end. */
        CHECK_INT(http1_chunked_next(&c, BYTES(text), &piece), SIZE(text));
        CHECK(slice_is(piece, "abc") && c.remaining == 0x40000000 - 3);
        CHECK_INT(http1_chunked_next(&c, "d", 1, &piece), 1);
        CHECK(slice_is(piece, "d"));
        CHECK_INT(http1_chunked_next(&c, "", 0, &piece), 0);
        CHECK_INT(piece.size, 0);
}

int main(void) {
        RUN(test_request, "a request's parts");
        RUN(test_response, "an answer's parts");
        RUN(test_head_end, "the head's end is found whatever the split");
        RUN(test_head_limits, "C187: heads and fields up to the limit, not beyond");
        RUN(test_head_start, "C144: no line end but CR LF, and no wait for what is no message");
        RUN(test_request_lines, "C122 C144: request lines");
        RUN(test_status_lines, "C144: status lines");
        RUN(test_both_lengths, "C140: Content-Length and Transfer-Encoding");
        RUN(test_content_length, "C142: duplicate or odd Content-Length");
        RUN(test_odd_names, "C143: space or odd byte before the colon");
        RUN(test_controls, "C144: bare CR, bare LF, NUL and other controls");
        RUN(test_host, "C123: Host once, and not missing");
        RUN(test_keep_alive, "C146: how long a connection lives");
        RUN(test_hop_by_hop, "C146: hop-by-hop fields");
        RUN(test_connection_bound, "C146: the Connection list is bounded");
        RUN(test_upgrade, "C148: upgrades are seen, the HTTP/2 preface is refused");
        RUN(test_expect, "expectations");
        RUN(test_connect_body, "C149: CONNECT with a length");
        RUN(test_response_framing, "C140: framing of answers");
        RUN(test_chunked_good, "C145 C150: chunked bodies whatever the split");
        RUN(test_chunked_bad, "C145: chunk syntax");
        RUN(test_chunked_bounds, "C145: extensions and trailers are bounded");
        RUN(test_chunked_pieces, "C150: a piece leaves as it comes");
        return TEST_END();
}
