/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdarg.h>

#include "basic/macro.h"

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}
static inline bool streq_ptr(const char *a, const char *b) {
        return a == b || (a && b && strcmp(a, b) == 0);
}

/* The rest of s after prefix, or NULL. */
static inline const char *startswith(const char *s, const char *prefix) {
        size_t n = strlen(prefix);
        return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}
static inline const char *endswith(const char *s, const char *suffix) {
        size_t n = strlen(s), m = strlen(suffix);
        return m <= n && memcmp(s + n - m, suffix, m) == 0 ? s + n - m : NULL;
}

/* ASCII only, whatever the locale. */
static inline char ascii_lower(char c) {
        return c >= 'A' && c <= 'Z' ? (char) (c + ('a' - 'A')) : c;
}
static inline bool ascii_digit(char c) {
        return c >= '0' && c <= '9';
}
static inline bool ascii_alpha(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/* Of a hexadecimal digit in either case; -1: it is none. */
static inline int ascii_hex_value(char c) {
        if (ascii_digit(c))
                return c - '0';
        c = ascii_lower(c);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
bool ascii_case_equal(const char *a, size_t a_size, const char *b);

/* C0, DEL, C1 and invalid UTF-8 become \xNN, so that text from outside cannot move a terminal's cursor or forge a line.
 * A tab becomes \t, a newline \n, a backslash stays. NULL when out of memory. */
char *string_escape_control(const char *s);
/* The same of s[0…size) as text of several lines: newlines and tabs stay. */
char *string_escape_control_text(const char *s, size_t size);

/* A word that a shell reads as s: s itself when nothing in it is special, else in single quotes. NULL when out of memory. */
char *string_quote_shell(const char *s);

/* *ret is a copy, to free; of NULL it is NULL. */
int string_copy(const char *from, char **ret);

/* Constant-time comparison of two secrets whose lengths are not secret. */
bool secret_equal(const char *a, size_t a_size, const char *b, size_t b_size);

/* The text of a format; NULL when out of memory. */
char *string_format_list(const char *format, va_list ap) _printf_(1, 0);
/* The same of the arguments that the calling function itself got behind its parameter `format`. */
#define string_format_own(format)                                 \
        ({                                                        \
                va_list _arguments;                               \
                char *_text;                                      \
                va_start(_arguments, format);                     \
                _text = string_format_list((format), _arguments); \
                va_end(_arguments);                               \
                _text;                                            \
        })

/* Behind *s, which is NULL or to be freed. On failure, -ENOMEM, it is as it was. */
_printf_(2, 3) int string_append(char **s, const char *format, ...);

/* For a parser's out-parameter: *ret is a sentence, to free; ret may be NULL. Returns -EBADMSG, or -ENOMEM with *ret NULL. */
int problem_set(char **ret, const char *format, ...) _printf_(2, 3);

/* Levenshtein distance, for "did you mean"; at most 64 bytes of each are looked at. */
unsigned string_distance(const char *a, const char *b);
/* Whether candidate is worth a "did you mean" for word at that distance: a third of it wrong, and one more. */
bool string_distance_near(const char *word, unsigned distance);

/* A NULL-terminated list of strings that grows. All of it is the list's; strv_free(list) → NULL. */
char **strv_free(char **list);
static inline void strv_freep(char ***list) {
        *list = strv_free(*list);
}
#define _cleanup_strv_free_ _cleanup_(strv_freep)
size_t strv_length(char *const *list);
bool strv_contains(char *const *list, const char *s);
/* All of them in one text, to be freed; "" of none. NULL when out of memory. */
char *strv_join(char *const *list, const char *separator);
int strv_extend(char ***list, const char *s);
_printf_(2, 3) int strv_extend_format(char ***list, const char *format, ...);
/* Each of more[], which may be NULL. */
int strv_extend_list(char ***list, char *const *more);
/* Takes s always: on failure it is freed. */
int strv_consume(char ***list, char *s);
