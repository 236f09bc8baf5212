/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>

#include "basic/text.h"
#include "basic/utf8.h"

int string_copy(const char *from, char **ret) {
        char *copy = from ? strdup(from) : NULL;

        if (from && !copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

bool ascii_case_equal(const char *a, size_t a_size, const char *b) {
        size_t b_size = strlen(b);

        if (a_size != b_size)
                return false;
        for (size_t i = 0; i < a_size; i++)
                if (ascii_lower(a[i]) != ascii_lower(b[i]))
                        return false;
        return true;
}

static char *escape_control(const char *s, size_t size, bool lines) {
        static const char hex[] = "0123456789abcdef";
        const unsigned char *in = (const unsigned char *) s;
        const unsigned char *end = in + size;
        char *out = malloc((size_t) (end - in) * 4 + 1), *p = out;

        if (!out)
                return NULL;
        while (in < end) {
                if (*in >= 0x20 && *in < 0x7f) { /* nearly all there is */
                        *p++ = (char) *in++;
                        continue;
                }
                size_t n = utf8_sequence(in, (size_t) (end - in));
                bool c1 = n == 2 && in[0] == 0xc2 && in[1] < 0xa0;

                if (lines && (*in == '\n' || *in == '\t'))
                        *p++ = (char) *in++;
                else if (*in == '\n' || *in == '\t') {
                        *p++ = '\\';
                        *p++ = *in++ == '\n' ? 'n' : 't';
                } else if (n == 0 || c1 || *in < 0x20 || *in == 0x7f) {
                        for (size_t i = 0, k = n ? n : 1; i < k; i++, in++) {
                                *p++ = '\\';
                                *p++ = 'x';
                                *p++ = hex[*in >> 4];
                                *p++ = hex[*in & 15];
                        }
                } else {
                        memcpy(p, in, n);
                        p += n;
                        in += n;
                }
        }
        *p = 0;
        return out;
}

char *string_escape_control(const char *s) {
        return escape_control(s, strlen(s), false);
}

char *string_escape_control_text(const char *s, size_t size) {
        return escape_control(s, size, true);
}

char *string_quote_shell(const char *s) {
        size_t size = strlen(s);
        bool plain = size > 0;

        for (size_t i = 0; i < size; i++)
                plain &= ascii_alpha(s[i]) || ascii_digit(s[i]) || strchr("/._-+@%:,=", s[i]);
        if (plain)
                return strdup(s);
        /* Each quote becomes four characters. */
        char *quoted = malloc(4 * size + 3), *p = quoted;
        if (!quoted)
                return NULL;
        *p++ = '\'';
        for (size_t i = 0; i < size; i++)
                if (s[i] == '\'')
                        p = stpcpy(p, "'\\''");
                else
                        *p++ = s[i];
        *p++ = '\'';
        *p = 0;
        return quoted;
}

bool secret_equal(const char *a, size_t a_size, const char *b, size_t b_size) {
        volatile unsigned char difference = 0;

        if (a_size != b_size)
                return false;
        for (size_t i = 0; i < a_size; i++)
                difference |= (unsigned char) (a[i] ^ b[i]);
        return difference == 0;
}

char *string_format_list(const char *format, va_list ap) {
        char *text;

        return vasprintf(&text, format, ap) < 0 ? NULL : text;
}

int string_append(char **s, const char *format, ...) {
        _cleanup_free_ char *more = string_format_own(format);
        size_t size = *s ? strlen(*s) : 0;

        char *longer = more ? realloc(*s, size + strlen(more) + 1) : NULL;
        if (!longer)
                return -ENOMEM;
        memcpy(longer + size, more, strlen(more) + 1);
        *s = longer;
        return 0;
}

int problem_set(char **ret, const char *format, ...) {
        if (!ret)
                return -EBADMSG;
        *ret = string_format_own(format);
        return *ret ? -EBADMSG : -ENOMEM;
}

unsigned string_distance(const char *a, const char *b) {
        size_t n = MIN(strlen(a), (size_t) 64), m = MIN(strlen(b), (size_t) 64);
        unsigned row[65];

        for (size_t j = 0; j <= m; j++)
                row[j] = (unsigned) j;
        for (size_t i = 1; i <= n; i++) {
                unsigned diagonal = row[0];
                row[0] = (unsigned) i;
                for (size_t j = 1; j <= m; j++) {
                        unsigned change = diagonal + (a[i - 1] != b[j - 1]);
                        diagonal = row[j];
                        row[j] = MIN(change, MIN(row[j], row[j - 1]) + 1);
                }
        }
        return row[m];
}

bool string_distance_near(const char *word, unsigned distance) {
        return distance <= MIN(strlen(word), (size_t) 64) / 3 + 1;
}

char **strv_free(char **list) {
        for (char **s = list; s && *s; s++)
                free(*s);
        free(list);
        return NULL;
}

size_t strv_length(char *const *list) {
        size_t n = 0;
        while (list && list[n])
                n++;
        return n;
}

bool strv_contains(char *const *list, const char *s) {
        for (; list && *list; list++)
                if (streq(*list, s))
                        return true;
        return false;
}

char *strv_join(char *const *list, const char *separator) {
        _cleanup_free_ char *text = strdup("");
        int r = text ? 0 : -ENOMEM;

        for (size_t i = 0; list && list[i] && r >= 0; i++)
                r = string_append(&text, "%s%s", i > 0 ? separator : "", list[i]);
        return r < 0 ? NULL : TAKE_PTR(text);
}

int strv_consume(char ***list, char *s) {
        if (!s)
                return -ENOMEM;
        size_t n = strv_length(*list);
        char **grown = reallocarray(*list, n + 2, sizeof(char *));
        if (!grown) {
                free(s);
                return -ENOMEM;
        }
        grown[n] = s;
        grown[n + 1] = NULL;
        *list = grown;
        return 0;
}

int strv_extend(char ***list, const char *s) {
        return strv_consume(list, strdup(s));
}

int strv_extend_format(char ***list, const char *format, ...) {
        return strv_consume(list, string_format_own(format));
}

int strv_extend_list(char ***list, char *const *more) {
        for (; more && *more; more++) {
                int r = strv_extend(list, *more);
                if (r < 0)
                        return r;
        }
        return 0;
}
