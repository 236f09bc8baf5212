/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who watches over a connection, and what it has not taken yet. Nothing waits for it: what it lags behind with is kept up to UPDATES_PENDING_BYTES, of
 * what cannot be done without UPDATES_PENDING_MAX messages more; the rest is dropped, and in its place it is told how many that were. */

#include "basic/macro.h"

typedef struct Pending Pending;

typedef struct Watcher {
        int fd; /* borrowed, SOCK_SEQPACKET, does not block */
        Pending *first, *last;
        size_t n_kept, size; /* of those to be kept; bytes of all */
} Watcher;

/* A datagram that message_close() gave, and the update's number. keep: it cannot be done without. 0, or a negative errno when the connection is of no use
 * any more. */
int watcher_send(Watcher *w, const char *text, size_t size, uint64_t number, bool keep);
/* The answer to what it asked, behind all that came before, with that descriptor, which is the caller's; -EBADF: none. -ENOBUFS: it asks and does not read. */
int watcher_reply(Watcher *w, const char *text, size_t size, int fd);
/* That many were dropped before, the last of which has that number. */
int watcher_miss(Watcher *w, uint64_t count, uint64_t number);
/* There is room again. */
int watcher_flush(Watcher *w);
/* Whether it waits for that. */
static inline bool watcher_waits(const Watcher *w) {
        return w->first;
}
/* Frees what is kept; how many were dropped with it. */
uint64_t watcher_done(Watcher *w);
