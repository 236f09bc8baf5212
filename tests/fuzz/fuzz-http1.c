/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/http1.h"
#include "fuzz.h"

static void check_within(Slice s, const char *data, size_t size) {
        HOLDS(s.size == 0 || (s.data >= data && s.data + s.size <= data + size));
        /* whatever is kept of a message can be written into another */
        for (size_t i = 0; i < s.size; i++)
                HOLDS(s.data[i] != '\r' && s.data[i] != '\n' && s.data[i] != 0);
}

static char *put(char *out, Slice s) {
        memcpy(out, s.data ?: "", s.size);
        return out + s.size;
}

static size_t write_head(const Http1Head *h, char *out) {
        char *p = out;

        if (h->is_response)
                p = put(p + sprintf(p, "HTTP/1.%u %03u ", h->minor, h->status), h->reason);
        else {
                *(p = put(p, h->method)) = ' ';
                p = put(p + 1, h->target);
                p += sprintf(p, " HTTP/1.%u", h->minor);
        }
        p = stpcpy(p, "\r\n");
        for (size_t i = 0; i < h->n_fields; i++) {
                p = put(p, h->fields[i].name);
                *p++ = ':';
                p = stpcpy(put(p, h->fields[i].value), "\r\n");
        }
        return (size_t) (stpcpy(p, "\r\n") - out);
}

static bool same(Slice a, Slice b) {
        return a.size == b.size && memcmp(a.data ?: "", b.data ?: "", a.size) == 0;
}

/* Written out again, a head is read as the same. */
static void check_round_trip(const Http1Head *h, size_t size) {
        char *out = malloc(size + 64);
        Http1Head *again = malloc(sizeof(Http1Head));
        HOLDS(out && again);
        size_t n = write_head(h, out);

        HOLDS(n <= size);
        HOLDS(http1_find_head_end(out, n, NULL) == (ssize_t) n);
        int r = h->is_response ? http1_parse_response(out, n, again, NULL) : http1_parse_request(out, n, again, NULL);
        HOLDS(r == 0 && again->n_fields == h->n_fields && again->framing == h->framing && again->content_length == h->content_length);
        HOLDS(again->keep_alive == h->keep_alive && again->expect_continue == h->expect_continue && again->has_upgrade == h->has_upgrade);
        HOLDS(same(again->method, h->method) && same(again->target, h->target) && same(again->reason, h->reason) && again->status == h->status);
        for (size_t i = 0; i < h->n_fields; i++) {
                HOLDS(same(again->fields[i].name, h->fields[i].name) && same(again->fields[i].value, h->fields[i].value));
                HOLDS(http1_is_hop_by_hop(again, again->fields + i) == http1_is_hop_by_hop(h, h->fields + i));
        }
        free(out);
        free(again);
}

static void check_head(const char *data, size_t size, bool response) {
        Http1Head *h = malloc(sizeof(Http1Head));
        const char *problem = NULL;
        HOLDS(h);
        int r = response ? http1_parse_response(data, size, h, &problem) : http1_parse_request(data, size, h, &problem);

        HOLDS(r == 0 || r == -EBADMSG || r == -EMSGSIZE);
        HOLDS((r < 0) == (problem != NULL));
        if (r == 0) {
                size_t lengths = http1_count(h, "content-length"), codings = http1_count(h, "transfer-encoding");

                check_within(h->method, data, size);
                check_within(h->target, data, size);
                check_within(h->reason, data, size);
                for (size_t i = 0; i < h->n_fields; i++) {
                        check_within(h->fields[i].name, data, size);
                        check_within(h->fields[i].value, data, size);
                }
                HOLDS(lengths + codings <= 1 && h->has_content_length == (lengths == 1));
                HOLDS(h->framing != HTTP1_BODY_CHUNKED || (codings == 1 && h->minor == 1));
                HOLDS(h->framing != HTTP1_BODY_LENGTH || lengths == 1);
                HOLDS(h->framing != HTTP1_BODY_CLOSE || response);
                HOLDS(response || http1_count(h, "host") == 1 || h->minor == 0);
                HOLDS(response ? h->status >= 100 && h->status <= 599 : h->method.size > 0 && h->target.size > 0);
                check_round_trip(h, size);
        }
        free(h);
}

/* The end is found where it is, however the bytes come in. */
static ssize_t find_in_steps(const char *data, size_t size, size_t step) {
        size_t scanned = 0;

        for (size_t n = MIN(step, size);; n = MIN(n + step, size)) {
                ssize_t r = http1_find_head_end(data, n, &scanned);
                if (r != 0 || n == size)
                        return r;
        }
}

typedef struct Decoded {
        ssize_t result; /* bytes consumed, 0 when it wants more, or an error */
        size_t size;
        char *payload;
} Decoded;

static Decoded decode(const char *data, size_t size, size_t step) {
        Decoded d = {.payload = malloc(size + 1)};
        Http1Chunked c = {};
        size_t done = 0;
        HOLDS(d.payload);

        for (size_t end = MIN(step, size);; end = MIN(end + step, size)) {
                while (done < end && !c.done) {
                        Slice piece;
                        ssize_t n = http1_chunked_next(&c, data + done, end - done, &piece);
                        if (n < 0) {
                                d.result = n;
                                return d;
                        }
                        HOLDS(n > 0 && (size_t) n <= end - done);
                        HOLDS(piece.size <= (size_t) n && (piece.size == 0 || (piece.data >= data + done && piece.data + piece.size <= data + done + n)));
                        memcpy(d.payload + d.size, piece.data ?: "", piece.size);
                        d.size += piece.size;
                        done += (size_t) n;
                }
                if (c.done || end == size)
                        break;
        }
        d.result = c.done ? (ssize_t) done : 0;
        return d;
}

/* What was decoded to its end is what somebody finds who goes by lines and numbers alone. */
static void check_plainly(const char *data, const Decoded *d) {
        const char *p = data, *end = data + d->result;
        size_t n = 0;

        for (;;) {
                const char *line = memmem(p, (size_t) (end - p), "\r\n", 2);
                uint64_t size = 0;
                HOLDS(line && ascii_hex_value(*p) >= 0);
                for (; ascii_hex_value(*p) >= 0; p++)
                        size = size * 16 + (unsigned) ascii_hex_value(*p);
                p = line + 2;
                if (size == 0)
                        break;
                HOLDS(size + 2 <= (uint64_t) (end - p) && n + size <= d->size && memcmp(d->payload + n, p, size) == 0);
                n += size;
                p += size + 2;
                HOLDS(p[-2] == '\r' && p[-1] == '\n');
        }
        HOLDS(n == d->size);
        /* Trailers, and nothing behind the empty line. */
        for (const char *line; (line = memmem(p, (size_t) (end - p), "\r\n", 2)) && line != p;)
                p = line + 2;
        HOLDS(p + 2 == end && p[0] == '\r' && p[1] == '\n');
}

static void check_chunked(const char *data, size_t size) {
        static const size_t steps[] = {1, 2, 3, 17, 4096};
        Decoded whole = decode(data, size, size);

        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                Decoded d = decode(data, size, steps[i]);
                HOLDS(d.result == whole.result && d.size == whole.size && memcmp(d.payload, whole.payload, d.size) == 0);
                free(d.payload);
        }
        if (whole.result > 0)
                check_plainly(data, &whole);
        free(whole.payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        const char *data = (const char *) bytes;
        ssize_t end = http1_find_head_end(data, size, NULL);

        HOLDS(end <= (ssize_t) MIN(size, (size_t) HTTP1_HEAD_MAX) && (end >= 0 || end == -EBADMSG || end == -EMSGSIZE));
        HOLDS(find_in_steps(data, size, 1) == end && find_in_steps(data, size, 7) == end);
        if (end > 0) {
                char *head = malloc((size_t) end);
                HOLDS(head);
                memcpy(head, data, (size_t) end);
                check_head(head, (size_t) end, false);
                check_head(head, (size_t) end, true);
                free(head);
                check_chunked(data + end, size - (size_t) end);
        } else {
                /* Whatever has no end is no head. */
                Http1Head *h = malloc(sizeof(Http1Head));
                HOLDS(h);
                HOLDS(http1_parse_request(data, size, h, NULL) < 0 && http1_parse_response(data, size, h, NULL) < 0);
                free(h);
        }
        check_chunked(data, size);
        return 0;
}
