/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a bailey that waits is handed: see ahead.h. */

#include "basic/macro.h"

#define AHEAD_MESSAGE_MAX (64U * 1024U) /* bytes, as of every message between our programs */
#define AHEAD_FDS_MAX 16U
#define AHEAD_PROJECT (-1) /* the working directory, which has no number */

typedef struct AheadRun {
        char **arguments, **environment, **names;
        int fds[AHEAD_FDS_MAX]; /* in the order of their names */
        size_t n_fds;
        uint64_t core, file_max; /* bytes; UINT64_MAX: none, and for file_max as it is */
} AheadRun;

#define AHEAD_RUN_NONE {.core = UINT64_MAX, .file_max = UINT64_MAX}

/* n_fds descriptors are there already, and as many have to be named. Each member is there once, and no other. -EBADMSG or -ENOMEM: what was
 * read so far is in *run all the same, for ahead_run_done(). */
int ahead_run_parse(const char *text, size_t size, AheadRun *run);
void ahead_run_done(AheadRun *run); /* closes them, too */

/* The number that each is to have, or AHEAD_PROJECT, each once and the standard streams and the project among them; *ret_least is above all of them.
 * -EBADMSG: the names say something else. */
int ahead_run_numbers(const AheadRun *run, int numbers[static AHEAD_FDS_MAX], int *ret_least);
