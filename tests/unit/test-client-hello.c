/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/client-hello.h"
#include "test.h"

/* A ClientHello under construction. */
static char message[16384];
static size_t n;

static void put(const char *data, size_t size) {
        memcpy(message + n, data, size);
        n += size;
}
#define PUT(text) put(text, sizeof(text) - 1)

static void put16(size_t value) {
        message[n++] = (char) (value >> 8);
        message[n++] = (char) value;
}

static void set16(size_t at, size_t value) {
        message[at] = (char) (value >> 8);
        message[at + 1] = (char) value;
}

static void put_server_name(const char *name) {
        size_t size = strlen(name);

        put16(0);
        put16(size + 5);
        put16(size + 3);
        PUT("\0");
        put16(size);
        put(name, size);
}

/* `extra` makes the extensions; the message is whole afterwards. */
static void build(void (*extra)(void)) {
        n = 0;
        PUT("\x16\x03\x01\0\0\x01\0\0\0\x03\x03" "0123456789abcdef0123456789abcdef" "\x04ssss\0\x04\x13\x01\x13\x02\x01\0");
        if (extra) {
                size_t at = n;
                put16(0);
                put16(0xff01); /* renegotiation_info, as any other */
                put16(1);
                PUT("\0");
                extra();
                set16(at, n - at - 2);
        }
        set16(3, n - 5);
        set16(7, n - 9);
}

static int judge(const char *host, const char *data, size_t size, size_t piece) {
        _cleanup_(client_hello_freep) ClientHello *h = NULL;
        Host parsed;
        int found = CLIENT_HELLO_MORE;

        CHECK_INT(host_parse(host, &parsed, NULL), 0);
        CHECK_INT(client_hello_new(&parsed, true, &h), 0);
        for (size_t at = 0; at < size && found == CLIENT_HELLO_MORE; at += piece)
                found = client_hello_feed(h, data + at, MIN(piece, size - at));
        return found;
}

static void expect(const char *host, ClientHelloFinding finding) {
        for (size_t piece = 1; piece <= n; piece += piece < 10 ? 1 : 97)
                CHECK_INT(judge(host, message, n, piece), finding);
        /* nothing is said before it is whole */
        if (finding != CLIENT_HELLO_MALFORMED)
                CHECK_INT(judge(host, message, n - 1, n), CLIENT_HELLO_MORE);
}

static const char *wanted;
static void extra_name(void) {
        put_server_name(wanted);
}
static void extra_none(void) {
        put16(35);
        put16(0);
}
static void extra_twice(void) {
        put_server_name("api.example.com");
        put_server_name("api.example.com");
}

static void test_names(void) {
        static const struct {
                const char *host, *asked;
                ClientHelloFinding finding;
        } rows[] = {
                {"api.example.com", "api.example.com", CLIENT_HELLO_SAME},  {"api.example.com", "API.Example.COM", CLIENT_HELLO_SAME},
                {"api.example.com", "api.example.com.", CLIENT_HELLO_SAME}, {"api.example.com", "denied.example", CLIENT_HELLO_OTHER},
                {"api.example.com", "xapi.example.com", CLIENT_HELLO_OTHER}, {"api.example.com", "api.example.com.evil.test", CLIENT_HELLO_OTHER},
                {"api.example.com", "9.9.9.9", CLIENT_HELLO_OTHER},         {"api.example.com", "a b", CLIENT_HELLO_OTHER},
                {"9.9.9.9", "denied.example", CLIENT_HELLO_OTHER},          {"9.9.9.9", "9.9.9.9", CLIENT_HELLO_SAME},
                {"api.example.com", "api.example.com\xc3\xa9", CLIENT_HELLO_OTHER},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                wanted = rows[i].asked;
                build(extra_name);
                if (judge(rows[i].host, message, n, n) != (int) rows[i].finding)
                        test_fail(__FILE__, __LINE__, "%s for %s", rows[i].asked, rows[i].host);
                expect(rows[i].host, rows[i].finding);
        }
        build(extra_none);
        expect("api.example.com", CLIENT_HELLO_NONE);
        expect("9.9.9.9", CLIENT_HELLO_SAME);
        expect("2001:db8::1", CLIENT_HELLO_SAME);
        build(NULL);
        expect("api.example.com", CLIENT_HELLO_NONE);
}

static void test_nul(void) {
        _cleanup_(client_hello_freep) ClientHello *h = NULL;
        Host host;

        wanted = "api.example.com_x";
        build(extra_name);
        char *at = memmem(message, n, "com_x", 5);
        CHECK(at);
        at[3] = 0;
        CHECK_INT(host_parse("api.example.com", &host, NULL), 0);
        CHECK_INT(client_hello_new(&host, false, &h), 0);
        CHECK_INT(client_hello_feed(h, message, n), CLIENT_HELLO_OTHER);
        CHECK_STR(h->name, "");
}

/* The same message in records of so many bytes. */
static size_t in_records(char *out, size_t size) {
        size_t m = 0;

        for (size_t at = 5; at < n; at += size) {
                size_t part = MIN(size, n - at);
                memcpy(out + m, "\x16\x03\x01", 3);
                out[m + 3] = (char) (part >> 8);
                out[m + 4] = (char) part;
                memcpy(out + m + 5, message + at, part);
                m += 5 + part;
        }
        return m;
}

static void test_records(void) {
        char out[8192];

        wanted = "api.example.com";
        build(extra_name);
        for (size_t size = 1; size < n; size++) {
                size_t m = in_records(out, size);
                CHECK_INT(judge("api.example.com", out, m, m), CLIENT_HELLO_SAME);
                CHECK_INT(judge("denied.example", out, m, 3), CLIENT_HELLO_OTHER);
        }
        /* what follows it in the same segment does not matter */
        memset(message + n, 'x', 4096);
        CHECK_INT(judge("api.example.com", message, n + 4096, n + 4096), CLIENT_HELLO_SAME);
}

static void test_malformed(void) {
        wanted = "api.example.com";
        build(extra_name);
        size_t whole = n;
        static const struct {
                size_t at;
                char byte;
        } rows[] = {{0, 23}, {0, 0x7f}, {1, 2}, {3, 0x50}, {5, 2}, {6, 1}, {9 + 2 + 32, 33}, {9 + 2 + 32 + 5, 1}, {9 + 2 + 32 + 5 + 6, 0}};
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                build(extra_name);
                CHECK_INT(n, whole);
                message[rows[i].at] = rows[i].byte;
                int found = judge("api.example.com", message, n, n);
                if (found != CLIENT_HELLO_MALFORMED && !(rows[i].at == 0 && found == CLIENT_HELLO_NOT_TLS))
                        test_fail(__FILE__, __LINE__, "byte %zu as %d gives %d", rows[i].at, rows[i].byte, found);
        }
        /* one byte more or less in any length is found */
        for (size_t at = 9 + 2 + 32; at < whole; at++)
                for (int step = -1; step <= 1; step += 2) {
                        build(extra_name);
                        message[at] = (char) (message[at] + step);
                        int found = judge("api.example.com", message, n, n);
                        CHECK(found == CLIENT_HELLO_MALFORMED || found == CLIENT_HELLO_OTHER || found == CLIENT_HELLO_NONE || found == CLIENT_HELLO_SAME);
                }
        build(extra_twice);
        CHECK_INT(judge("api.example.com", message, n, n), CLIENT_HELLO_MALFORMED);

        char large[CLIENT_HELLO_MAX + 16] = "\x16\x03\x01\x40\0\x01\0\x1f\0";
        CHECK_INT(judge("api.example.com", large, sizeof(large), 100), CLIENT_HELLO_MALFORMED);
        memcpy(large + 6, "\0\x7f\xff", 3);
        CHECK_INT(judge("api.example.com", large, 9, 9), CLIENT_HELLO_MALFORMED); /* told at once that it is too large */
}

static void test_others(void) {
        static const struct {
                const char *text;
                ClientHelloFinding finding;
        } rows[] = {
                {"SSH-2.0-x\r\n", CLIENT_HELLO_SSH}, {"SSH", CLIENT_HELLO_MORE}, {"SSX", CLIENT_HELLO_NOT_TLS}, {"S", CLIENT_HELLO_MORE},
                {"GET / HTTP/1.1\r\n", CLIENT_HELLO_NOT_TLS}, {"\x15\x03\x01", CLIENT_HELLO_NOT_TLS}, {"\x80\x2e\x01", CLIENT_HELLO_NOT_TLS},
                {"\x16", CLIENT_HELLO_MORE}, {"\x16\x02", CLIENT_HELLO_MALFORMED},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (size_t piece = 1; piece < 5; piece++)
                        CHECK_INT(judge("api.example.com", rows[i].text, strlen(rows[i].text), piece), rows[i].finding);
        for (ClientHelloFinding f = CLIENT_HELLO_SAME; f < _CLIENT_HELLO_FINDING_MAX; f++)
                CHECK(client_hello_words(f));
        CHECK(!client_hello_words(_CLIENT_HELLO_FINDING_INVALID) && !client_hello_words(_CLIENT_HELLO_FINDING_MAX));
}

int main(void) {
        RUN(test_names, "C124: the name that a client asks for, in every cut");
        RUN(test_nul, "C124: a NUL in the name");
        RUN(test_records, "C124: a message in many records");
        RUN(test_malformed, "C124: what is no ClientHello, or one that two readers could read differently");
        RUN(test_others, "C124: what is not TLS");
        return TEST_END();
}
