/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* TOML 1.0 for C: a document becomes a tree of plain values that know where they stand. The reader itself is toml++ (one C++
 * file, toml.cc); nothing of C++ shows here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A policy is a page of text; the caps keep a hostile one from costing more than a refusal. */
#define TOML_SIZE_MAX (256U * 1024U)
#define TOML_DEPTH_MAX 16U     /* tables and arrays within each other */
#define TOML_LINE_DOTS_MAX 512U /* dots outside of strings on one line: a dotted key nests a table at each */

typedef enum TomlType {
        TOML_TABLE,
        TOML_ARRAY,
        TOML_STRING,
        TOML_INTEGER,
        TOML_BOOLEAN,
        TOML_OTHER, /* a float, a date or a time: nothing of ours takes one */
} TomlType;

typedef struct TomlValue TomlValue;
struct TomlValue {
        TomlType type;
        char *key;             /* in a table; NULL elsewhere */
        unsigned line, column; /* 1…, of the key in a table, else of the value */
        char *string;          /* TOML_STRING: UTF-8 without a NUL */
        int64_t integer;
        bool boolean;
        TomlValue *items;      /* TOML_TABLE and TOML_ARRAY, in the order of the text */
        size_t n_items;
};

typedef struct TomlProblem {
        unsigned line, column;
        char text[256];
} TomlProblem;

/* -EBADMSG with *ret_problem for text that is not TOML or beyond a cap, -ENOMEM. */
int toml_parse(const char *text, size_t size, TomlValue **ret, TomlProblem *ret_problem);
TomlValue *toml_free(TomlValue *v);
const char *toml_type_to_string(TomlType t); /* "a string", for messages */

#ifdef __cplusplus
}
#endif
