/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/json-reader.h"
#include "basic/utf8.h"

int json_reader_init(JsonReader *r, const char *text, size_t size) {
        const unsigned char *p = (const unsigned char *) text, *end = p + size;

        while (p < end) {
                size_t n = utf8_sequence(p, (size_t) (end - p));
                if (n == 0 || *p == 0)
                        return -EBADMSG;
                p += n;
        }
        *r = (JsonReader) {.at = text, .end = text + size};
        return 0;
}

static void skip_space(JsonReader *r) {
        while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
                r->at++;
}

static bool take(JsonReader *r, char c) {
        skip_space(r);
        if (r->at == r->end || *r->at != c)
                return false;
        r->at++;
        return true;
}

static int enter(JsonReader *r, char bracket) {
        if (!take(r, bracket))
                return -EBADMSG;
        r->first = true;
        return 0;
}

/* 1: something follows, its comma taken. */
static int next(JsonReader *r, char bracket) {
        bool first = r->first;

        r->first = false;
        if (take(r, bracket))
                return 0;
        return first || take(r, ',') ? 1 : -EBADMSG;
}

int json_enter_object(JsonReader *r) {
        return enter(r, '{');
}

int json_enter_array(JsonReader *r) {
        return enter(r, '[');
}

int json_next_element(JsonReader *r) {
        return next(r, ']');
}

int json_next_member(JsonReader *r, char **ret_name) {
        _cleanup_free_ char *name = NULL;

        int n = next(r, '}');
        if (n <= 0)
                return n;
        n = json_take_string(r, &name);
        if (n < 0)
                return n;
        if (!take(r, ':'))
                return -EBADMSG;
        *ret_name = TAKE_PTR(name);
        return 1;
}

static int take_hex(JsonReader *r, unsigned *ret) {
        unsigned value = 0;

        if (r->end - r->at < 4)
                return -EBADMSG;
        for (unsigned i = 0; i < 4; i++, r->at++) {
                char c = *r->at;
                if (c >= '0' && c <= '9')
                        value = value * 16 + (unsigned) (c - '0');
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        value = value * 16 + (unsigned) ((c | 0x20) - 'a') + 10;
                else
                        return -EBADMSG;
        }
        *ret = value;
        return 0;
}

static char *put_utf8(char *to, unsigned c) {
        if (c < 0x80)
                *to++ = (char) c;
        else if (c < 0x800)
                *to++ = (char) (0xc0 | c >> 6);
        else if (c < 0x10000) {
                *to++ = (char) (0xe0 | c >> 12);
                *to++ = (char) (0x80 | (c >> 6 & 0x3f));
        } else {
                *to++ = (char) (0xf0 | c >> 18);
                *to++ = (char) (0x80 | (c >> 12 & 0x3f));
                *to++ = (char) (0x80 | (c >> 6 & 0x3f));
        }
        if (c >= 0x80)
                *to++ = (char) (0x80 | (c & 0x3f));
        return to;
}

/* Behind "\u". A character beyond the first plane is written as two. */
static int take_unicode(JsonReader *r, char **to) {
        unsigned c = 0, low = 0;

        int e = take_hex(r, &c);
        if (e < 0)
                return e;
        if (c >= 0xd800 && c < 0xdc00) {
                if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
                        return -EBADMSG;
                r->at += 2;
                e = take_hex(r, &low);
                if (e < 0 || low < 0xdc00 || low >= 0xe000)
                        return -EBADMSG;
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        } else if (c == 0 || (c >= 0xdc00 && c < 0xe000))
                return -EBADMSG;
        *to = put_utf8(*to, c);
        return 0;
}

static int take_escape(JsonReader *r, char **to) {
        static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";

        if (r->at == r->end)
                return -EBADMSG;
        char c = *r->at++;
        if (c == 'u')
                return take_unicode(r, to);
        const char *found = c ? strchr(from, c) : NULL;
        if (!found)
                return -EBADMSG;
        *(*to)++ = meant[found - from];
        return 0;
}

int json_take_string(JsonReader *r, char **ret) {
        if (!take(r, '"'))
                return -EBADMSG;
        const char *end = r->at;
        while (end < r->end && *end != '"')
                end += *end == '\\' ? 2 : 1;
        if (end >= r->end)
                return -EBADMSG;

        /* No escape is shorter than what it stands for. */
        _cleanup_free_ char *text = malloc((size_t) (end - r->at) + 1);
        if (!text)
                return -ENOMEM;
        char *to = text;
        while (r->at < end) {
                unsigned char c = (unsigned char) *r->at++;
                if (c < 0x20)
                        return -EBADMSG;
                if (c != '\\')
                        *to++ = (char) c;
                else if (take_escape(r, &to) < 0)
                        return -EBADMSG;
        }
        if (r->at != end)
                return -EBADMSG;
        r->at++;
        *to = 0;
        *ret = TAKE_PTR(text);
        return 0;
}

int json_take_u64(JsonReader *r, uint64_t *ret) {
        uint64_t value = 0;

        skip_space(r);
        const char *first = r->at;
        for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
                if (__builtin_mul_overflow(value, 10U, &value) || __builtin_add_overflow(value, (unsigned) (*r->at - '0'), &value))
                        return -EBADMSG;
        if (r->at == first || (*first == '0' && r->at - first > 1))
                return -EBADMSG;
        if (r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E'))
                return -EBADMSG;
        *ret = value;
        return 0;
}

int json_take_bool(JsonReader *r, bool *ret) {
        skip_space(r);
        size_t n = (size_t) (r->end - r->at);
        bool value = n >= 4 && memcmp(r->at, "true", 4) == 0;

        if (!value && (n < 5 || memcmp(r->at, "false", 5) != 0))
                return -EBADMSG;
        r->at += value ? 4 : 5;
        *ret = value;
        return 0;
}

int json_reader_finish(JsonReader *r) {
        skip_space(r);
        return r->at == r->end ? 0 : -EBADMSG;
}
