/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/parse.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "shared/json-view.h"

/* The text is JSON, so that no more than where things end has to be found. Every step looks at the end all the same. */

static size_t skip_space(JsonView v, size_t at) {
        while (at < v.size && (v.at[at] == ' ' || v.at[at] == '\t' || v.at[at] == '\n' || v.at[at] == '\r'))
                at++;
        return at;
}

/* Behind the string that begins at `at`. */
static size_t skip_string(JsonView v, size_t at) {
        for (at++; at < v.size && v.at[at] != '"'; at++)
                if (v.at[at] == '\\')
                        at++;
        return MIN(at + 1, v.size);
}

/* Behind the value that begins at `at`. */
static size_t skip_value(JsonView v, size_t at) {
        size_t depth = 0;

        while (at < v.size) {
                char c = v.at[at];

                if (c == '"')
                        at = skip_string(v, at);
                else if (c == '{' || c == '[') {
                        depth++;
                        at++;
                } else if (c == '}' || c == ']') {
                        if (depth == 0)
                                return at;
                        depth--;
                        at++;
                } else if (depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r'))
                        return at;
                else {
                        at++;
                        continue; /* of a number or a word, or between the values of a container */
                }
                if (depth == 0)
                        return at;
        }
        return at;
}

static JsonView part(JsonView v, size_t from, size_t to) {
        return (JsonView){v.at + from, to - from};
}

JsonView json_view(const char *text, size_t size) {
        JsonView v = {text, size};
        size_t from = skip_space(v, 0);

        return part(v, from, skip_value(v, from));
}

bool json_view_named(JsonView v, const char *name, size_t size, JsonView *ret_name, JsonView *ret) {
        size_t at = 1;

        if (!json_view_is_object(v))
                return false;
        for (;;) {
                at = skip_space(v, at);
                if (at >= v.size || v.at[at] != '"')
                        return false;
                size_t end = skip_string(v, at);
                bool found = end - at == size + 2 && memcmp(v.at + at + 1, name, size) == 0;
                JsonView named = part(v, at, end);
                at = skip_space(v, end);
                if (at >= v.size || v.at[at] != ':')
                        return false;
                at = skip_space(v, at + 1);
                end = skip_value(v, at);
                if (found) {
                        *ret_name = named;
                        *ret = part(v, at, end);
                        return true;
                }
                at = skip_space(v, end);
                if (at >= v.size || v.at[at] != ',')
                        return false;
                at++;
        }
}

bool json_view_member(JsonView v, const char *name, JsonView *ret) {
        JsonView named;

        return json_view_named(v, name, strlen(name), &named, ret);
}

bool json_view_next(JsonView v, size_t *state, JsonView *ret) {
        size_t at = *state;

        if (!json_view_is_array(v))
                return false;
        if (at > 0) {
                at = skip_space(v, at);
                if (at >= v.size || v.at[at] != ',')
                        return false;
        }
        at = skip_space(v, at + 1);
        size_t end = skip_value(v, at);
        if (end == at)
                return false;
        *ret = part(v, at, end);
        *state = end;
        return true;
}

static unsigned hex4(const char *s) {
        unsigned value = 0;

        for (size_t i = 0; i < 4; i++)
                value = value * 16 + ((unsigned) ascii_hex_value(s[i]) & 15U);
        return value;
}

/* The escape that begins behind the backslash at in[0]; what it stands for is never longer. Returns the bytes taken, 0 where it is cut. */
static size_t decode_escape(const char *in, size_t size, char *out, size_t *ret_size) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

        if (size == 0)
                return 0;
        if (*in != 'u') {
                const char *at = *in ? strchr(from, *in) : NULL;
                out[0] = at ? to[at - from] : *in;
                *ret_size = 1;
                return 1;
        }
        if (size < 5)
                return 0;
        unsigned code = hex4(in + 1);
        if (code < 0xd800 || code >= 0xdc00) {
                *ret_size = utf8_put(code, out);
                return 5;
        }
        if (size < 11)
                return 0;
        *ret_size = utf8_put(0x10000U + ((code - 0xd800U) << 10) + ((hex4(in + 7) - 0xdc00U) & 0x3ffU), out);
        return 11;
}

int json_view_string(JsonView v, char **ret) {
        size_t size = 0;

        if (!json_view_is_string(v) || v.size < 2 || v.at[v.size - 1] != '"')
                return -EINVAL;
        char *out = malloc(v.size + 4);
        if (!out)
                return -ENOMEM;
        for (size_t at = 1, end = v.size - 1; at < end;) {
                size_t n = 1, taken = 1;

                if (v.at[at] == '\\') {
                        taken = decode_escape(v.at + at + 1, end - at - 1, out + size, &n);
                        if (taken == 0)
                                break;
                        taken++;
                } else
                        out[size] = v.at[at];
                at += taken;
                size += n;
        }
        out[size] = 0;
        *ret = out;
        return 0;
}

int json_view_u64(JsonView v, uint64_t max, uint64_t *ret) {
        char digits[21];

        if (!json_view_is_number(v) || v.size >= sizeof(digits))
                return -EINVAL;
        memcpy(digits, v.at, v.size);
        digits[v.size] = 0;
        return parse_u64(digits, max, ret) < 0 ? -EINVAL : 0;
}

int json_view_member_string(JsonView v, const char *name, char **ret) {
        JsonView member;

        return json_view_member(v, name, &member) ? json_view_string(member, ret) : -ENOENT;
}

int json_view_member_u64(JsonView v, const char *name, uint64_t max, uint64_t *ret) {
        JsonView member;

        return json_view_member(v, name, &member) ? json_view_u64(member, max, ret) : -ENOENT;
}
