/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/client-hello.h"

/* RFC 8446, sections 5.1 and 4, and B.3. */
#define RECORD_HANDSHAKE 22
#define RECORD_HEADER 5U
#define RECORD_MAX (16U * 1024U)
#define MESSAGE_CLIENT_HELLO 1
#define MESSAGE_HEADER 4U
#define EXTENSION_SERVER_NAME 0U
#define NAME_TYPE_HOST 0U

static const char ssh[] = "SSH-"; /* RFC 4253, section 4.2 */

const char *client_hello_words(ClientHelloFinding finding) {
        static const char *const words[_CLIENT_HELLO_FINDING_MAX] = {
                [CLIENT_HELLO_SAME] = "asks for the tunnel's host", [CLIENT_HELLO_OTHER] = "asks for another host than the tunnel's",
                [CLIENT_HELLO_NONE] = "names no host",              [CLIENT_HELLO_SSH] = "is SSH",
                [CLIENT_HELLO_NOT_TLS] = "is not TLS",              [CLIENT_HELLO_MALFORMED] = "begins as TLS does and is malformed",
        };
        return finding >= 0 && finding < _CLIENT_HELLO_FINDING_MAX ? words[finding] : NULL;
}

int client_hello_new(const Host *host, bool enforce, ClientHello **ret) {
        ClientHello *h = calloc(1, sizeof(ClientHello));

        if (!h)
                return -ENOMEM;
        h->host = *host;
        h->enforce = enforce;
        *ret = h;
        return 0;
}

ClientHello *client_hello_free(ClientHello *h) {
        if (h)
                free(h->data);
        return mfree(h);
}

/* Bytes between two ends, taken from the front. */
typedef struct Cursor {
        const uint8_t *at, *end;
} Cursor;

static bool take_number(Cursor *c, size_t n, size_t *ret) {
        size_t value = 0;

        if ((size_t) (c->end - c->at) < n)
                return false;
        while (n-- > 0)
                value = value << 8 | *c->at++;
        *ret = value;
        return true;
}

static bool take(Cursor *c, size_t size, Cursor *ret) {
        if ((size_t) (c->end - c->at) < size)
                return false;
        *ret = (Cursor) {c->at, c->at + size};
        c->at += size;
        return true;
}

/* A vector whose length stands in n bytes before it. */
static bool take_vector(Cursor *c, size_t n, size_t least, size_t most, Cursor *ret) {
        size_t size;

        return take_number(c, n, &size) && size >= least && size <= most && take(c, size, ret);
}

static ClientHelloFinding compare(ClientHello *h, Cursor name) {
        char text[HOST_NAME_MAX_BYTES + 2] = "";
        size_t size = (size_t) (name.end - name.at);
        Host asked;

        if (size >= sizeof(text) || memchr(name.at, 0, size))
                return CLIENT_HELLO_OTHER;
        memcpy(text, name.at, size);
        if (host_parse(text, &asked, NULL) < 0)
                return CLIENT_HELLO_OTHER;
        strcpy(h->name, asked.name);
        return asked.kind == h->host.kind && streq(asked.name, h->host.name) ? CLIENT_HELLO_SAME : CLIENT_HELLO_OTHER;
}

/* The extension holds a list of one name: no other type was ever defined. */
static ClientHelloFinding read_server_name(ClientHello *h, Cursor extension) {
        Cursor list, name;
        size_t type;

        if (!take_vector(&extension, 2, 1, UINT16_MAX, &list) || extension.at != extension.end || !take_number(&list, 1, &type) ||
            type != NAME_TYPE_HOST || !take_vector(&list, 2, 1, UINT16_MAX, &name) || list.at != list.end)
                return CLIENT_HELLO_MALFORMED;
        return compare(h, name);
}

static ClientHelloFinding read_extensions(ClientHello *h, Cursor body) {
        ClientHelloFinding found = h->host.kind == HOST_NAME ? CLIENT_HELLO_NONE : CLIENT_HELLO_SAME;
        Cursor all, extension;
        bool seen = false;
        size_t type;

        if (body.at == body.end)
                return found;
        if (!take_vector(&body, 2, 0, UINT16_MAX, &all) || body.at != body.end)
                return CLIENT_HELLO_MALFORMED;
        while (all.at < all.end) {
                if (!take_number(&all, 2, &type) || !take_vector(&all, 2, 0, UINT16_MAX, &extension))
                        return CLIENT_HELLO_MALFORMED;
                if (type != EXTENSION_SERVER_NAME)
                        continue;
                if (seen)
                        return CLIENT_HELLO_MALFORMED; /* two readers could take either */
                seen = true;
                found = read_server_name(h, extension);
                if (found == CLIENT_HELLO_MALFORMED)
                        return found;
        }
        return found;
}

static ClientHelloFinding read_message(ClientHello *h, Cursor body) {
        Cursor skipped;

        if (!take(&body, 2 + 32, &skipped) ||                     /* legacy_version, random */
            !take_vector(&body, 1, 0, 32, &skipped) ||            /* legacy_session_id */
            !take_vector(&body, 2, 2, UINT16_MAX, &skipped) ||    /* cipher_suites */
            !take_vector(&body, 1, 1, UINT8_MAX, &skipped))       /* legacy_compression_methods */
                return CLIENT_HELLO_MALFORMED;
        return read_extensions(h, body);
}

/* Gathers the records' payload in message, which has CLIENT_HELLO_MAX bytes. */
static ClientHelloFinding read_records(ClientHello *h, uint8_t *message) {
        Cursor c = {(const uint8_t *) h->data, (const uint8_t *) h->data + h->size}, payload;
        size_t n = 0, size = SIZE_MAX, type, major, minor, length;

        for (;;) {
                if (c.at < c.end && *c.at != RECORD_HANDSHAKE)
                        return CLIENT_HELLO_MALFORMED;
                if (c.end - c.at >= 2 && c.at[1] != 3)
                        return CLIENT_HELLO_MALFORMED;
                if (!take_number(&c, 1, &type) || !take_number(&c, 1, &major) || !take_number(&c, 1, &minor) || !take_number(&c, 2, &length))
                        return CLIENT_HELLO_MORE;
                if (length == 0 || length > RECORD_MAX)
                        return CLIENT_HELLO_MALFORMED;
                size_t here = MIN(length, (size_t) (c.end - c.at));
                (void) take(&c, here, &payload);
                memcpy(message + n, payload.at, here);
                n += here;
                if (n > 0 && message[0] != MESSAGE_CLIENT_HELLO)
                        return CLIENT_HELLO_MALFORMED;
                if (n >= MESSAGE_HEADER)
                        size = MESSAGE_HEADER + ((size_t) message[1] << 16 | (size_t) message[2] << 8 | message[3]);
                if (size != SIZE_MAX && size > CLIENT_HELLO_MAX - RECORD_HEADER)
                        return CLIENT_HELLO_MALFORMED;
                if (n >= size)
                        return read_message(h, (Cursor) {message + MESSAGE_HEADER, message + size});
                if (here < length)
                        return CLIENT_HELLO_MORE;
        }
}

static ClientHelloFinding judge(ClientHello *h) {
        uint8_t message[CLIENT_HELLO_MAX];
        size_t n = MIN(h->size, STRLEN("SSH-"));

        if (h->size == 0)
                return CLIENT_HELLO_MORE;
        if (memcmp(h->data, ssh, n) == 0)
                return n == STRLEN("SSH-") ? CLIENT_HELLO_SSH : CLIENT_HELLO_MORE;
        return h->data[0] == RECORD_HANDSHAKE ? read_records(h, message) : CLIENT_HELLO_NOT_TLS;
}

int client_hello_feed(ClientHello *h, const char *data, size_t size) {
        bool too_large = size > CLIENT_HELLO_MAX - h->size;

        /* Only what follows a whole message may be beyond the limit. */
        size = MIN(size, CLIENT_HELLO_MAX - h->size);
        if (h->size + size > h->room) {
                size_t room = MAX(h->size + size, (size_t) 1024);
                char *larger = realloc(h->data, room);
                if (!larger)
                        return -ENOMEM;
                h->data = larger;
                h->room = room;
        }
        if (size > 0)
                memcpy(h->data + h->size, data, size);
        h->size += size;
        ClientHelloFinding found = judge(h);
        return found == CLIENT_HELLO_MORE && (too_large || h->size == CLIENT_HELLO_MAX) ? (int) CLIENT_HELLO_MALFORMED : (int) found;
}
