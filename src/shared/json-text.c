/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/json-text.h"

/* What may stand here. */
typedef enum Expect {
        EXPECT_VALUE,
        EXPECT_VALUE_OR_CLOSE,
        EXPECT_NAME,
        EXPECT_NAME_OR_CLOSE,
        EXPECT_COMMA_OR_CLOSE,
        EXPECT_END,
} Expect;

/* The four digits of \uXXXX, or -1. */
static int read_unit(const char *p, const char *end) {
        int value = 0;

        if (end - p < 4)
                return -1;
        for (size_t i = 0; i < 4; i++) {
                char c = ascii_lower(p[i]);
                if (ascii_digit(c))
                        value = value << 4 | (c - '0');
                else if (c >= 'a' && c <= 'f')
                        value = value << 4 | (c - 'a' + 10);
                else
                        return -1;
        }
        return value;
}

/* p is past the backslash; returns past the escape, or NULL. */
static const char *escape_end(const char *p, const char *end) {
        if (p == end)
                return NULL;
        if (*p != 'u')
                return strchr("\"\\/bfnrt", *p) && *p ? p + 1 : NULL;
        int unit = read_unit(p + 1, end);
        p += 5;
        if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
                return NULL;
        if (unit < 0xd800 || unit > 0xdbff)
                return p;
        if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
                return NULL;
        unit = read_unit(p + 2, end);
        return unit >= 0xdc00 && unit <= 0xdfff ? p + 6 : NULL;
}

const char *json_text_string_end(const char *p, const char *end) {
        if (p == end || *p++ != '"')
                return NULL;
        while (p && p < end) {
                unsigned char c = (unsigned char) *p++;
                if (c == '"')
                        return p;
                if (c < 0x20)
                        return NULL;
                if (c == '\\')
                        p = escape_end(p, end);
        }
        return NULL;
}

static const char *digits_end(const char *p, const char *end) {
        const char *start = p;

        while (p < end && ascii_digit(*p))
                p++;
        return p > start ? p : NULL;
}

static const char *number_end(const char *p, const char *end) {
        if (p < end && *p == '-')
                p++;
        p = p < end && *p == '0' ? p + 1 : digits_end(p, end);
        if (p && p < end && *p == '.')
                p = digits_end(p + 1, end);
        if (p && p < end && (*p == 'e' || *p == 'E')) {
                p++;
                if (p < end && (*p == '+' || *p == '-'))
                        p++;
                p = digits_end(p, end);
        }
        return p;
}

static const char *scalar_end(const char *p, const char *end) {
        static const char *const words[] = {"true", "false", "null"};

        if (*p == '"')
                return json_text_string_end(p, end);
        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                size_t n = strlen(words[i]);
                if ((size_t) (end - p) >= n && memcmp(p, words[i], n) == 0)
                        return p + n;
        }
        return number_end(p, end);
}

static const char *skip_space(const char *p, const char *end) {
        while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
                p++;
        return p;
}

static const char *name_end(const char *p, const char *end) {
        p = json_text_string_end(p, end);
        p = p ? skip_space(p, end) : NULL;
        return p && p < end && *p == ':' ? p + 1 : NULL;
}

int json_text_check(const char *data, size_t size, unsigned depth_max) {
        const char *p = data, *end = data + size;
        uint64_t objects = 0; /* bit 0: the innermost is an object */
        unsigned depth = 0;
        Expect expect = EXPECT_VALUE;

        while ((p = skip_space(p, end)) < end) {
                bool object = objects & 1, may_close = expect != EXPECT_VALUE && expect != EXPECT_NAME && depth > 0;

                if (may_close && *p == (object ? '}' : ']')) {
                        objects >>= 1;
                        depth--;
                        expect = depth > 0 ? EXPECT_COMMA_OR_CLOSE : EXPECT_END;
                        p++;
                } else if (expect == EXPECT_COMMA_OR_CLOSE && *p == ',') {
                        expect = object ? EXPECT_NAME : EXPECT_VALUE;
                        p++;
                } else if (expect == EXPECT_NAME || expect == EXPECT_NAME_OR_CLOSE) {
                        p = name_end(p, end);
                        expect = EXPECT_VALUE;
                } else if (expect == EXPECT_COMMA_OR_CLOSE || expect == EXPECT_END) {
                        return -EBADMSG;
                } else if (*p == '{' || *p == '[') {
                        if (depth == MIN(depth_max, JSON_TEXT_DEPTH_MAX))
                                return -E2BIG;
                        depth++;
                        objects = objects << 1 | (*p == '{');
                        expect = *p == '{' ? EXPECT_NAME_OR_CLOSE : EXPECT_VALUE_OR_CLOSE;
                        p++;
                } else {
                        p = scalar_end(p, end);
                        expect = depth > 0 ? EXPECT_COMMA_OR_CLOSE : EXPECT_END;
                }
                if (!p)
                        return -EBADMSG;
        }
        return expect == EXPECT_END ? 0 : -EBADMSG;
}
