/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/json-locate.h"

typedef struct Cursor {
        const char *at, *end;
} Cursor;

static void skip_space(Cursor *c) {
        while (c->at < c->end && strchr(" \t\n\r", *c->at))
                c->at++;
}

static bool take(Cursor *c, char what) {
        skip_space(c);
        if (c->at >= c->end || *c->at != what)
                return false;
        c->at++;
        return true;
}

/* What stands between the quotation marks, as it is written. */
static bool take_string(Cursor *c, const char **ret, size_t *ret_size) {
        if (!take(c, '"'))
                return false;
        const char *start = c->at;
        for (; c->at < c->end && *c->at != '"'; c->at++)
                if (*c->at == '\\')
                        c->at++;
        if (c->at >= c->end)
                return false;
        *ret = start;
        *ret_size = (size_t) (c->at - start);
        c->at++;
        return true;
}

/* To the ',', '}' or ']' behind it. */
static bool skip_value(Cursor *c) {
        const char *string;
        size_t size, depth = 0;

        for (skip_space(c); c->at < c->end; skip_space(c)) {
                if (*c->at == '"') {
                        if (!take_string(c, &string, &size))
                                return false;
                        continue;
                }
                if (depth == 0 && strchr(",}]", *c->at))
                        return true;
                if (strchr("{[", *c->at))
                        depth++;
                else if (strchr("}]", *c->at))
                        depth--;
                c->at++;
        }
        return false;
}

/* The cursor stands at the value then, and *ret_start where the member begins. */
static bool enter_member(Cursor *c, const char *name, size_t size, const char **ret_start) {
        const char *found;
        size_t found_size;

        if (!take(c, '{'))
                return false;
        do {
                skip_space(c);
                *ret_start = c->at;
                if (!take_string(c, &found, &found_size) || !take(c, ':'))
                        return false;
                if (found_size == size && memcmp(found, name, size) == 0)
                        return true;
        } while (skip_value(c) && take(c, ','));
        return false;
}

static bool enter_element(Cursor *c, unsigned long index, const char **ret_start) {
        if (!take(c, '['))
                return false;
        for (; index > 0; index--)
                if (!skip_value(c) || !take(c, ','))
                        return false;
        skip_space(c);
        *ret_start = c->at;
        return c->at < c->end && *c->at != ']';
}

unsigned json_locate(const char *text, size_t size, const char *path) {
        Cursor c = {.at = text, .end = text + size};
        const char *start = text;
        unsigned line = 1;

        while (*path) {
                if (*path == '[') {
                        char *rest;
                        unsigned long index = strtoul(path + 1, &rest, 10);
                        if (rest == path + 1 || *rest != ']' || !enter_element(&c, index, &start))
                                return 0;
                        path = rest + 1;
                } else {
                        size_t n = strcspn(path, ".[");
                        if (n == 0 || !enter_member(&c, path, n, &start))
                                return 0;
                        path += n;
                }
                if (*path == '.' && !*++path)
                        return 0;
        }
        for (const char *s = text; s < start; s++)
                line += *s == '\n';
        return line;
}
