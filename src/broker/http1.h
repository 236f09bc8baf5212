/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The strict HTTP/1.1 message parser: the boundary against request smuggling. Pure: no I/O, no allocation, no state but
 * what the caller holds. It refuses whatever two readers could read differently (RFC 9112, sections 2.2, 3, 5, 6, 7):
 * bare LF or CR, NUL and other controls, obs-fold, white space before a colon, both length headers, repeated or odd
 * lengths, transfer codings other than exactly one "chunked", HTTP/1.0 with a transfer coding, all but HTTP/1.0/1.1, requests whose header
 * names hold '_' (gateways read it as '-'), a Host that is missing in HTTP/1.1 or repeated, expectations other than 100-continue, and bodies
 * that an answer's status forbids. */

#include "basic/macro.h"

#define HTTP1_HEAD_MAX (64U * 1024U) /* bytes of a whole head; larger is -EMSGSIZE */
#define HTTP1_FIELDS_MAX 128U
#define HTTP1_CHUNK_LINE_MAX 256U    /* size, extensions and CRLF */
#define HTTP1_TRAILER_MAX (8U * 1024U)

/* A piece of the caller's buffer, not NUL-terminated. */
typedef struct Slice {
        const char *data;
        size_t size;
} Slice;

typedef struct Http1Field {
        Slice name;
        Slice value; /* without surrounding SP and HTAB */
} Http1Field;

typedef enum Http1Framing {
        HTTP1_BODY_NONE,
        HTTP1_BODY_LENGTH,  /* exactly content_length bytes */
        HTTP1_BODY_CHUNKED,
        HTTP1_BODY_CLOSE,   /* answers only: until end of file */
} Http1Framing;

typedef struct Http1Head {
        bool is_response;
        Slice method;   /* request: a token, at most 32 bytes, case kept */
        Slice target;   /* request: visible ASCII only, at least 1 byte */
        unsigned status; /* response: 100…599 */
        Slice reason;
        unsigned minor; /* HTTP/1.minor: 0 or 1 */
        Http1Field fields[HTTP1_FIELDS_MAX];
        size_t n_fields;
        Http1Framing framing; /* for a response: as if the request had not been HEAD or CONNECT; see http1_response_framing() */
        bool has_content_length;
        uint64_t content_length;
        bool keep_alive;      /* by version and Connection */
        bool expect_continue; /* request: Expect: 100-continue */
        bool has_upgrade;     /* an Upgrade field was there */
} Http1Head;

/* How many bytes of data[0…size) the head takes, its empty line included: > 0 when there is a whole one, 0 when more is
 * needed, -EMSGSIZE over a limit, -EBADMSG when malformed, with *ret_problem a static phrase fit for an answer's body and a log. No leading
 * empty line is skipped. `scanned` (may be NULL) remembers where the search for the end stopped; start it at 0. The parsers take the
 * head alone, as long as http1_find_head_end() says; on failure *ret is of no meaning. */
ssize_t http1_find_head_end(const char *data, size_t size, size_t *scanned);
int http1_parse_request(const char *data, size_t size, Http1Head *ret, const char **ret_problem);
int http1_parse_response(const char *data, size_t size, Http1Head *ret, const char **ret_problem);

/* A response's framing given what was asked: none for HEAD, 1xx, 204, 304. */
Http1Framing http1_response_framing(const Http1Head *head, bool request_was_head);

/* First field of that name (ASCII case-insensitive), or NULL; the count of such fields. */
const Http1Field *http1_find(const Http1Head *head, const char *name);
size_t http1_count(const Http1Head *head, const char *name);

/* True for a field that ends at this hop: the fixed list of RFC 9110 section 7.6.1 (Connection, Proxy-*, Keep-Alive, TE, Trailer,
 * Transfer-Encoding, Upgrade), and every name that the head's Connection fields nominate. */
bool http1_is_hop_by_hop(const Http1Head *head, const Http1Field *field);

/* A streaming decoder of the chunked coding. Feeds on raw bytes, gives pieces of payload that point into them. Chunk
 * extensions are dropped, trailers are checked and dropped. */
typedef struct Http1Chunked {
        unsigned state;
        uint64_t remaining;
        size_t line;
        size_t trailer;
        unsigned digits;
        bool done;
} Http1Chunked;

/* Consumes some of data[0…size): returns the bytes consumed (> 0), 0 when it needs more, -EBADMSG when malformed. When a
 * piece of payload was among them it is *ret_piece (size 0 otherwise). c->done is set after the last CRLF. */
ssize_t http1_chunked_next(Http1Chunked *c, const char *data, size_t size, Slice *ret_piece);

/* Without optional white space (SP, HTAB) around it. */
Slice slice_trim(Slice s);

static inline bool slice_is(Slice s, const char *text) {
        return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}
