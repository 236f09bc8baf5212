/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* A strict reader of JSON (RFC 8259) from memory, for bailey, which loads no JSON library; the others have shared/json-check.h. The caller says
 * what comes next and gets it or -EBADMSG: there is no tree and no recursion. Integers are unsigned and exact; other numbers, NUL in strings and
 * text that is not UTF-8 are refused. */
typedef struct JsonReader {
        const char *at, *end;
        bool first; /* of an object or list that was entered: no comma before the next */
} JsonReader;

/* text is borrowed. */
int json_reader_init(JsonReader *r, const char *text, size_t size);

int json_enter_object(JsonReader *r);
/* 1 with the name of a member, to free, whose value has to be taken next; 0 behind the object's end. */
int json_next_member(JsonReader *r, char **ret_name);

int json_enter_array(JsonReader *r);
/* 1: an element has to be taken next; 0 behind the list's end. */
int json_next_element(JsonReader *r);

int json_take_string(JsonReader *r, char **ret);
int json_take_u64(JsonReader *r, uint64_t *ret);
int json_take_bool(JsonReader *r, bool *ret);

/* Nothing but white space is left. */
int json_reader_finish(JsonReader *r);
