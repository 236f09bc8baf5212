/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "basic/json-writer.h"
#include "basic/utf8.h"

void json_writer_done(JsonWriter *w) {
        w->text = mfree(w->text);
        w->size = w->room = 0;
}

static void append(JsonWriter *w, const char *s, size_t n) {
        if (w->error < 0)
                return;
        if (w->room - w->size <= n) {
                size_t room = MAX(w->room * 2, w->size + n + 256);
                char *grown = realloc(w->text, room);
                if (!grown) {
                        w->error = -ENOMEM;
                        return;
                }
                w->text = grown;
                w->room = room;
        }
        memcpy(w->text + w->size, s, n);
        w->size += n;
        w->text[w->size] = 0;
}

/* Bytes that stand for themselves: nearly all there are. */
static size_t plain(const unsigned char *p, const unsigned char *end) {
        const unsigned char *q = p;

        while (q < end && *q >= 0x20 && *q < 0x7f && *q != '"' && *q != '\\')
                q++;
        return (size_t) (q - p);
}

static void append_quoted(JsonWriter *w, const char *s, size_t size) {
        const unsigned char *p = (const unsigned char *) s, *end = p + size;

        append(w, "\"", 1);
        while (p < end) {
                size_t run = plain(p, end), n = run ?: utf8_sequence(p, (size_t) (end - p));
                char escaped[8];

                if (run > 0) {
                        append(w, (const char *) p, run);
                        p += run;
                } else if (n == 0) {
                        append(w, "\xef\xbf\xbd", 3);
                        p++;
                } else if (*p == '"' || *p == '\\') {
                        append(w, (char[]){'\\', (char) *p++}, 2);
                } else if (*p < 0x20 || *p == 0x7f) {
                        append(w, escaped, (size_t) snprintf(escaped, sizeof(escaped), "\\u%04x", *p++));
                } else {
                        append(w, (const char *) p, n);
                        p += n;
                }
        }
        append(w, "\"", 1);
}

static void begin_value(JsonWriter *w, const char *key) {
        if (w->comma)
                append(w, ",", 1);
        w->comma = true;
        if (key) {
                append_quoted(w, key, strlen(key));
                append(w, ":", 1);
        }
}

static void open_container(JsonWriter *w, const char *key, const char *bracket) {
        begin_value(w, key);
        append(w, bracket, 1);
        w->comma = false;
}

static void close_container(JsonWriter *w, const char *bracket) {
        append(w, bracket, 1);
        w->comma = true;
}

void json_open_object(JsonWriter *w, const char *key) {
        open_container(w, key, "{");
}
void json_close_object(JsonWriter *w) {
        close_container(w, "}");
}
void json_open_array(JsonWriter *w, const char *key) {
        open_container(w, key, "[");
}
void json_close_array(JsonWriter *w) {
        close_container(w, "]");
}

void json_add_string_n(JsonWriter *w, const char *key, const char *value, size_t size) {
        begin_value(w, key);
        append_quoted(w, value, size);
}

void json_add_string(JsonWriter *w, const char *key, const char *value) {
        if (value)
                json_add_string_n(w, key, value, strlen(value));
        else
                json_add_null(w, key);
}

void json_add_strings(JsonWriter *w, const char *key, char *const *list) {
        json_open_array(w, key);
        for (; list && *list; list++)
                json_add_string(w, NULL, *list);
        json_close_array(w);
}

void json_add_u64(JsonWriter *w, const char *key, uint64_t value) {
        char digits[20], *end = digits + sizeof(digits), *p = end;

        /* A receipt is mostly numbers, and printf takes longer for one than all else here. */
        do
                *--p = (char) ('0' + value % 10);
        while ((value /= 10) > 0);
        begin_value(w, key);
        append(w, p, (size_t) (end - p));
}

void json_add_bool(JsonWriter *w, const char *key, bool value) {
        begin_value(w, key);
        append(w, value ? "true" : "false", value ? 4 : 5);
}

void json_add_null(JsonWriter *w, const char *key) {
        begin_value(w, key);
        append(w, "null", 4);
}

void json_add_raw(JsonWriter *w, const char *key, const char *text, size_t size) {
        begin_value(w, key);
        append(w, text, size);
}

int json_writer_finish(JsonWriter *w, char **ret, size_t *ret_size) {
        if (w->error < 0) {
                json_writer_done(w);
                return w->error;
        }
        *ret = TAKE_PTR(w->text);
        if (ret_size)
                *ret_size = w->size;
        return 0;
}

int json_writer_print(JsonWriter *w, FILE *f) {
        _cleanup_free_ char *text = NULL;

        int r = json_writer_finish(w, &text, NULL);
        if (r < 0)
                return r;
        fprintf(f, "%s\n", text);
        return ferror(f) ? -EIO : 0;
}
