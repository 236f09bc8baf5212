/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdio.h>

#include "basic/macro.h"

/* A writer of compact JSON into memory, for programs that load no JSON library (bailey) and for hot paths (the spool).
 * Invalid UTF-8 becomes U+FFFD, control characters \u00NN: the output is always valid. Errors stick: check once, at the end. */
typedef struct JsonWriter {
        char *text;
        size_t size, room;
        int error;
        bool comma;
} JsonWriter;

void json_writer_done(JsonWriter *w);

void json_open_object(JsonWriter *w, const char *key);  /* key is NULL outside an object */
void json_close_object(JsonWriter *w);
void json_open_array(JsonWriter *w, const char *key);
void json_close_array(JsonWriter *w);
void json_add_string(JsonWriter *w, const char *key, const char *value); /* NULL value → null */
void json_add_string_n(JsonWriter *w, const char *key, const char *value, size_t size);
/* An array of strings; NULL is an empty one. */
void json_add_strings(JsonWriter *w, const char *key, char *const *list);
void json_add_u64(JsonWriter *w, const char *key, uint64_t value);
void json_add_bool(JsonWriter *w, const char *key, bool value);
void json_add_null(JsonWriter *w, const char *key);
/* A whole value as it is written elsewhere; that it is JSON is the caller's to know. */
void json_add_raw(JsonWriter *w, const char *key, const char *text, size_t size);

/* Moves the text out, NUL-terminated; negative errno if anything failed. */
int json_writer_finish(JsonWriter *w, char **ret, size_t *ret_size);
/* Finishes it as a line of a stream, which is the caller's to flush. -EIO: it cannot be written. */
int json_writer_print(JsonWriter *w, FILE *f);
