/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a JSON text must be before anything else reads it: json-glib, which makes a tree of it (json_read_object()), or json-view.h, which makes
 * none. bailey, which loads no library, has a strict reader of its own, basic/json-reader.h.
 *
 * json-glib takes more than JSON (comments, "var x = {}"), differs between its versions in what more, recurses without a limit, wraps large
 * integers, and keeps the last of two members with one name, so that two readers of a file could disagree about it. */

#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */

#include <json-glib/json-glib.h>

typedef struct JsonProblem {
        unsigned line, column; /* from 1; column in bytes */
        char text[120];        /* a phrase for people; holds nothing of the text but the name of a repeated member, escaped and cut */
} JsonProblem;

/* 0, or -EBADMSG with *ret_problem set: not UTF-8, a NUL, not RFC 8259, deeper than max_depth (of objects and lists; at most 64),
 * two members of one name in one object, an integer of more than 18 digits; -ENOMEM. */
int json_check(const char *text, size_t size, unsigned max_depth, JsonProblem *ret_problem);

/* Checks and reads. *ret_parser owns the tree whose root, an object, is *ret; g_object_unref() frees it. */
int json_read_object(const char *text, size_t size, unsigned max_depth, JsonParser **ret_parser, JsonObject **ret, JsonProblem *ret_problem);

static inline void json_parser_unrefp(JsonParser **p) {
        g_clear_object(p);
}
#define _cleanup_json_parser_ _cleanup_(json_parser_unrefp)
