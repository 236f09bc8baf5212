/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The updates of a conversation that were told last and that its state hangs on, with the number of each, for an errandd whose connection broke: what was on
 * its way then is told again to it, and what is not here any more is counted. Bounded by BACKLOG_MAX and BACKLOG_BYTES; the oldest go first. */

#include "shim/limits.h"
#include "shim/watcher.h"

typedef struct Backlog {
        struct BacklogEntry {
                uint64_t number;
                char *text;
                size_t size;
        } entries[BACKLOG_MAX]; /* a ring: first is the oldest */
        size_t first, n, size;
} Backlog;

/* number is higher than all before. Takes nothing; without memory for it, it is one that is not here any more. */
void backlog_add(Backlog *b, uint64_t number, const char *text, size_t size);
/* All after that number, up to `last`, which is the newest that was told, in their order; between them how many are missing. As watcher_send(). */
int backlog_tell(const Backlog *b, Watcher *w, uint64_t after, uint64_t last);
void backlog_done(Backlog *b);
