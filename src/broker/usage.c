/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/usage.h"

#define NUMBER_MAX UINT64_C(1000000000000) /* more tokens than any answer has; keeps sums from overflowing */
#define DEPTH_MAX 4096U

void usage_init(Usage *u, bool events) {
        *u = (Usage) {.events = events};
}

/* A new text begins. */
static void reset(Usage *u) {
        u->depth = u->usage_depth = 0;
        u->in_string = u->escaped = u->expect_name = u->parent = u->broken = u->in_number = false;
        u->name_size = 0;
}

static bool is_name(const Usage *u, const char *name) {
        return u->name_size == strlen(name) && memcmp(u->name, name, u->name_size) == 0;
}

static void end_number(Usage *u) {
        static const char *const names[_USAGE_FIELD_MAX] = {
                [USAGE_INPUT] = "input_tokens", [USAGE_OUTPUT] = "output_tokens", [USAGE_CACHE_CREATION] = "cache_creation_input_tokens",
                [USAGE_CACHE_READ] = "cache_read_input_tokens", [USAGE_PROMPT] = "prompt_tokens", [USAGE_COMPLETION] = "completion_tokens",
                [USAGE_TOTAL] = "total_tokens",
        };

        u->in_number = false;
        for (UsageField f = 0; f < _USAGE_FIELD_MAX; f++)
                if (is_name(u, names[f]))
                        u->most[f] = MAX(u->most[f], u->number);
}

/* An object or a list opens as the value of the member whose name was read last. */
static void open_value(Usage *u, bool list) {
        bool in_object = u->depth > 0 && (u->depth > 2 || !u->lists[u->depth]);

        if (u->depth == 1)
                u->parent = in_object && !list && (is_name(u, "message") || is_name(u, "response"));
        if (u->usage_depth == 0 && !list && in_object && is_name(u, "usage") && (u->depth == 1 || (u->depth == 2 && u->parent)))
                u->usage_depth = u->depth + 1;
        if (++u->depth > DEPTH_MAX)
                u->broken = true;
        if (u->depth <= 2)
                u->lists[u->depth] = list;
        u->expect_name = !list;
        u->name_size = 0;
}

static void close_value(Usage *u) {
        if (u->depth == 0) {
                u->broken = true;
                return;
        }
        if (u->usage_depth == u->depth)
                u->usage_depth = 0;
        u->depth--;
        u->name_size = 0;
        u->expect_name = false;
}

static void in_string(Usage *u, char c) {
        if (u->escaped)
                u->escaped = false;
        else if (c == '\\')
                u->escaped = true;
        else if (c == '"') {
                u->in_string = false;
                return;
        }
        if (!u->expect_name)
                return;
        /* A name with an escape in it is none of those that matter. */
        if (c == '\\' || u->name_size >= USAGE_NAME_MAX)
                u->name_size = USAGE_NAME_MAX + 1;
        else
                u->name[u->name_size++] = c;
}

static void json_byte(Usage *u, char c) {
        if (u->broken)
                return;
        if (u->in_string) {
                in_string(u, c);
                return;
        }
        if (u->in_number) {
                if (ascii_digit(c)) {
                        u->number = MIN(u->number * 10 + (uint64_t) (c - '0'), NUMBER_MAX);
                        return;
                }
                end_number(u);
        }
        switch (c) {
        case '"':
                u->in_string = true;
                if (u->expect_name)
                        u->name_size = 0;
                break;
        case ':':
                u->expect_name = false;
                break;
        case ',':
                /* Whether this is a list or an object matters where names do: in objects of the first levels and in "usage". */
                u->expect_name = u->depth > 2 || (u->depth > 0 && !u->lists[u->depth]);
                u->name_size = 0;
                break;
        case '{':
        case '[':
                open_value(u, c == '[');
                break;
        case '}':
        case ']':
                close_value(u);
                break;
        default:
                if (ascii_digit(c) && u->usage_depth > 0 && u->depth == u->usage_depth && !u->expect_name) {
                        u->in_number = true;
                        u->number = (uint64_t) (c - '0');
                }
                break;
        }
}

/* An event's lines of data are one text, which an empty line ends. */
static void event_byte(Usage *u, char c) {
        if (c == '\r')
                return;
        if (c == '\n') {
                if (!u->line_begun) {
                        if (u->in_number)
                                end_number(u);
                        reset(u);
                } else if (u->in_data)
                        json_byte(u, ' ');
                u->in_data = u->line_begun = false;
                u->line_size = 0;
                return;
        }
        u->line_begun = true;
        if (u->in_data)
                json_byte(u, c);
        else if (u->line_size < STRLEN("data:")) {
                u->line[u->line_size++] = c;
                u->in_data = u->line_size == STRLEN("data:") && memcmp(u->line, "data:", STRLEN("data:")) == 0;
        }
}

void usage_feed(Usage *u, const char *data, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (u->events)
                        event_byte(u, data[i]);
                else
                        json_byte(u, data[i]);
}

uint64_t usage_tokens(const Usage *u) {
        uint64_t sum = 0;

        if (u->most[USAGE_TOTAL] > 0)
                return u->most[USAGE_TOTAL];
        for (UsageField f = 0; f < _USAGE_FIELD_MAX; f++)
                sum += u->most[f];
        return sum;
}
