/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/http1.h"

/* RFC 9112, section 7.1, byte by byte but for the payload. What each state waits for: */
enum {
        CHUNK_SIZE,       /* a digit, or after at least one: ';' or CR */
        CHUNK_EXTENSION,  /* text, or CR */
        CHUNK_SIZE_LF,
        CHUNK_DATA,       /* `remaining` bytes */
        CHUNK_DATA_CR,
        CHUNK_DATA_LF,
        TRAILER_START,    /* a name's first byte, or CR of the last line */
        TRAILER_NAME,
        TRAILER_VALUE,
        TRAILER_LF,
        LAST_LF,
        FAILED,           /* stays so */
};

/* Names of trailers are dropped, so a letter, a digit or one of the signs of tchar is all that is asked. */
static bool is_name_byte(unsigned char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int next_after_size(Http1Chunked *c, unsigned char byte) {
        int digit = ascii_hex_value((char) byte);

        if (digit >= 0) {
                /* 15 digits and more than 2^60 bytes are no chunk; so nothing here, nor a reader with signed numbers, overflows. */
                if (c->digits >= 15)
                        return -EBADMSG;
                c->digits++;
                c->remaining = c->remaining << 4 | (unsigned) digit;
                return CHUNK_SIZE;
        }
        if (c->digits == 0)
                return -EBADMSG;
        return byte == ';' ? CHUNK_EXTENSION : byte == '\r' ? CHUNK_SIZE_LF : -EBADMSG;
}

/* The state after one byte that is not payload, or -EBADMSG. */
static int next_state(Http1Chunked *c, unsigned char byte) {
        bool text = (byte >= 0x20 && byte != 0x7f) || byte == '\t';

        switch (c->state) {
        case CHUNK_SIZE:
                return next_after_size(c, byte);
        case CHUNK_EXTENSION:
                return byte == '\r' ? CHUNK_SIZE_LF : text && byte < 0x80 ? CHUNK_EXTENSION : -EBADMSG;
        case CHUNK_SIZE_LF:
                return byte != '\n' ? -EBADMSG : c->remaining > 0 ? CHUNK_DATA : TRAILER_START;
        case CHUNK_DATA_CR:
                return byte == '\r' ? CHUNK_DATA_LF : -EBADMSG;
        case CHUNK_DATA_LF:
                return byte == '\n' ? CHUNK_SIZE : -EBADMSG;
        case TRAILER_START:
                return byte == '\r' ? LAST_LF : is_name_byte(byte) ? TRAILER_NAME : -EBADMSG;
        case TRAILER_NAME:
                return byte == ':' ? TRAILER_VALUE : is_name_byte(byte) ? TRAILER_NAME : -EBADMSG;
        case TRAILER_VALUE:
                return byte == '\r' ? TRAILER_LF : text ? TRAILER_VALUE : -EBADMSG;
        case TRAILER_LF:
                return byte == '\n' ? TRAILER_START : -EBADMSG;
        case LAST_LF:
                c->done = byte == '\n';
                return c->done ? LAST_LF : -EBADMSG;
        default:
                return -EBADMSG;
        }
}

/* Counts the byte against the limit of its line. */
static bool within_limit(Http1Chunked *c) {
        if (c->state <= CHUNK_SIZE_LF)
                return ++c->line <= HTTP1_CHUNK_LINE_MAX;
        if (c->state >= TRAILER_START)
                return ++c->trailer <= HTTP1_TRAILER_MAX;
        return true;
}

ssize_t http1_chunked_next(Http1Chunked *c, const char *data, size_t size, Slice *ret_piece) {
        size_t i = 0;

        *ret_piece = (Slice){};
        while (i < size && !c->done) {
                if (c->state == CHUNK_DATA) {
                        size_t n = (size_t) MIN((uint64_t) (size - i), c->remaining);

                        *ret_piece = (Slice){data + i, n};
                        c->remaining -= n;
                        if (c->remaining == 0)
                                c->state = CHUNK_DATA_CR;
                        return (ssize_t) (i + n);
                }
                int next = within_limit(c) ? next_state(c, (unsigned char) data[i++]) : -EBADMSG;
                if (next < 0) {
                        c->state = FAILED;
                        return -EBADMSG;
                }
                if (c->state == CHUNK_DATA_LF)
                        c->line = c->digits = 0;
                c->state = (unsigned) next;
        }
        return (ssize_t) i;
}
