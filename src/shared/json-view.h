/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks into a JSON text without a tree of it, so that a text from outside costs its own size and no more: for what is large and hostile, or of
 * which little is wanted. What is read whole is read by json_read_object(). Only for what json_check() has taken: of another text no more is said
 * than that the views lie in it. A name that is written with escapes is not found. */

#include "basic/macro.h"

/* One value as it is written, without the space around it; borrowed. {}: there is none. */
typedef struct JsonView {
        const char *at;
        size_t size;
} JsonView;

JsonView json_view(const char *text, size_t size);

static inline bool json_view_is_object(JsonView v) {
        return v.size > 0 && *v.at == '{';
}
static inline bool json_view_is_array(JsonView v) {
        return v.size > 0 && *v.at == '[';
}
static inline bool json_view_is_string(JsonView v) {
        return v.size > 0 && *v.at == '"';
}
static inline bool json_view_is_number(JsonView v) {
        return v.size > 0 && (*v.at == '-' || (*v.at >= '0' && *v.at <= '9'));
}

/* The value of that member; false, and *ret as it was, where v is no object or has none. */
bool json_view_member(JsonView v, const char *name, JsonView *ret);

/* The same for a name that no NUL ends; *ret_name is the name as it is written, with its quotation marks. */
bool json_view_named(JsonView v, const char *name, size_t size, JsonView *ret_name, JsonView *ret);

/* The elements of an array in their order; *state is 0 before the first. False behind the last, and where v is no array. */
bool json_view_next(JsonView v, size_t *state, JsonView *ret);

/* What a string says, ended by a NUL, to free. -EINVAL: it is no string; -ENOMEM. */
int json_view_string(JsonView v, char **ret);
/* A whole number from 0 to max; -EINVAL: it is none. */
int json_view_u64(JsonView v, uint64_t max, uint64_t *ret);

/* The same of members. -ENOENT: there is none. */
int json_view_member_string(JsonView v, const char *name, char **ret);
int json_view_member_u64(JsonView v, const char *name, uint64_t max, uint64_t *ret);
