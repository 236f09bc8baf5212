/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The writing end of a spool: whole records in batches. What a full disk cut off is taken back, or finished first when the
 * disk has room again, so a reader never meets half a record before a whole one. */

#include "shared/spool.h"

/* Encoded records, one after another. */
typedef struct SpoolBatch {
        uint8_t *data;
        size_t size, room;
        size_t n;    /* records that begin or go on in it */
        size_t rest; /* the first `rest` bytes finish a record whose beginning is in the file already */
} SpoolBatch;

void spool_batch_done(SpoolBatch *b);
int spool_batch_add(SpoolBatch *b, SpoolKind kind, const char *payload, size_t size);
/* Moves all of `from` behind what `to` holds; when out of memory it stays where it is. */
void spool_batch_move(SpoolBatch *to, SpoolBatch *from);

typedef struct SpoolFile {
        int fd;
        off_t good; /* where the next record begins */
        bool dirty; /* written since the last sync */
} SpoolFile;

/* Takes fd. A torn last record, left by a writer that was killed, is cut off when the file can be read and truncated. */
void spool_file_init(SpoolFile *f, int fd);

/* Writes the batch, which then holds what could not be written. 0 when nothing is left. */
int spool_file_write(SpoolFile *f, SpoolBatch *b);

/* Writes one record that is not kept when it cannot be written; `left` (empty) may get its rest, see above. */
int spool_file_write_one(SpoolFile *f, SpoolBatch *left, const uint8_t *record, size_t size);

int spool_file_sync(SpoolFile *f);
