/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An audit's trace as a file: one JSON object, an access a line. */

#include "bailey/access.h"

#define TRACE_SIZE_MAX (64U * 1024 * 1024) /* ACCESSES_MAX entries of some 300 bytes, and ACCESS_NAMES_MAX escaped */

/* The text, NUL-terminated, the caller's to free. */
int trace_print(const Trace *t, char **ret, size_t *ret_size);

/* All of it or nothing: -EBADMSG when it is no trace, or one with a member that is missing, unknown, repeated or out of range. */
int trace_parse(const char *text, size_t size, Trace *ret);

/* Where a trace is to be written. */
typedef struct TraceFile {
        int directory;
        char *name;       /* in it */
        const char *path; /* as the caller named it; borrowed */
} TraceFile;
#define TRACE_FILE_NONE ((TraceFile) {.directory = -EBADF})

/* Looks whether a trace can be written there, before anything is run: a file of the caller's own may be there, and nothing else.
 * Logs. */
int trace_file_open(const char *path, TraceFile *ret);
void trace_file_done(TraceFile *f);

/* The whole trace appears there with mode 0600, or what was there before stays; no link is followed. Logs. */
int trace_file_write(const TraceFile *f, const Trace *t);
