/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who watches over a connection, and what it has not taken yet. Nothing waits for it: what can be done without is dropped as soon as it lags,
 * the rest is kept up to UPDATES_PENDING_MAX and then dropped as well; in the place of what was dropped it is told how many that were. */

#include "basic/macro.h"

typedef struct Pending Pending;

typedef struct Watcher {
        int fd; /* borrowed, SOCK_SEQPACKET, does not block */
        Pending *first, *last;
        size_t n_kept;
} Watcher;

/* A datagram that message_close() gave. keep: it is worth waiting in memory. 0, or a negative errno when the connection is of no use any more. */
int watcher_send(Watcher *w, const char *text, size_t size, bool keep);
/* That many were dropped before. */
int watcher_miss(Watcher *w, uint64_t count);
/* There is room again. */
int watcher_flush(Watcher *w);
/* Whether it waits for that. */
static inline bool watcher_waits(const Watcher *w) {
        return w->first;
}
/* Frees what is kept; how many were dropped with it. */
uint64_t watcher_done(Watcher *w);
