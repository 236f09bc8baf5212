/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/reply.h"
#include "basic/text.h"

typedef struct Reader {
        const char *p, *end;
} Reader;

static void skip_space(Reader *r) {
        while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
                r->p++;
}

static bool take(Reader *r, char c) {
        skip_space(r);
        if (r->p >= r->end || *r->p != c)
                return false;
        r->p++;
        return true;
}

/* One character after a backslash. What is not ASCII becomes "?": this text is for a person, and rarely has any. */
static int read_escape(Reader *r) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

        if (r->p >= r->end)
                return -EBADMSG;
        char c = *r->p++;
        if (c == 'u') {
                int value = 0;
                for (unsigned i = 0; i < 4; i++) {
                        int d = r->p < r->end ? ascii_hex_value(*r->p++) : -1;
                        if (d < 0)
                                return -EBADMSG;
                        value = value * 16 + d;
                }
                return value > 0 && value < 0x80 ? value : '?';
        }
        const char *at = c ? strchr(from, c) : NULL;
        return at ? to[at - from] : -EBADMSG;
}

static bool read_string(Reader *r, char *buffer, size_t room) {
        size_t n = 0;

        if (!take(r, '"'))
                return false;
        while (r->p < r->end && *r->p != '"') {
                int c = (unsigned char) *r->p++;
                if (c < 0x20)
                        return false;
                if (c == '\\') {
                        c = read_escape(r);
                        if (c < 0)
                                return false;
                }
                if (n + 1 < room)
                        buffer[n++] = (char) c;
        }
        if (r->p >= r->end)
                return false;
        r->p++;
        buffer[n] = 0;
        return true;
}

/* A number, true, false or null, as text. */
static bool read_word(Reader *r, char *buffer, size_t room) {
        size_t n = 0;

        skip_space(r);
        while (r->p < r->end && (ascii_alpha(*r->p) || ascii_digit(*r->p) || *r->p == '-' || *r->p == '+' || *r->p == '.')) {
                if (n + 1 >= room)
                        return false;
                buffer[n++] = *r->p++;
        }
        buffer[n] = 0;
        return n > 0;
}

ReplyType reply_parse(const char *data, size_t size, char ret_text[REPLY_TEXT_MAX + 1]) {
        Reader r = {.p = data, .end = data + size};
        char key[16], value[REPLY_TEXT_MAX + 1], type[16] = "", text[REPLY_TEXT_MAX + 1] = "";
        bool version = false;

        if (!take(&r, '{'))
                return _REPLY_TYPE_INVALID;
        do {
                if (!read_string(&r, key, sizeof(key)) || !take(&r, ':'))
                        return _REPLY_TYPE_INVALID;
                skip_space(&r);
                bool string = r.p < r.end && *r.p == '"';
                if (!(string ? read_string(&r, value, sizeof(value)) : read_word(&r, value, sizeof(value))))
                        return _REPLY_TYPE_INVALID;
                if (streq(key, "v") && !string)
                        version = streq(value, "1");
                else if (streq(key, "type") && string)
                        (void) memcpy(type, value, MIN(strlen(value) + 1, sizeof(type)));
                else if (streq(key, "text") && string)
                        memcpy(text, value, sizeof(text));
        } while (take(&r, ','));
        if (!take(&r, '}'))
                return _REPLY_TYPE_INVALID;
        type[sizeof(type) - 1] = 0;
        skip_space(&r);
        if (r.p != r.end || !version)
                return _REPLY_TYPE_INVALID;

        if (streq(type, "ready"))
                return REPLY_READY;
        if (!streq(type, "error"))
                return _REPLY_TYPE_INVALID;
        memcpy(ret_text, text, sizeof(text));
        return REPLY_ERROR;
}
