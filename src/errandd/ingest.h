/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Takes the records of a session's spool into the store, exactly once whatever dies when: the offset becomes durable in the same transaction as
 * what was read up to it. A spool's writer is trusted with its own session and nothing else. */

#include "errandd/store.h"

typedef struct IngestHandler {
        /* A grant for once was used. Called within the transaction, before it is committed, so it may be called again for the same use and must be
         * durable when it returns; a negative errno undoes the transaction, and the use comes again. */
        int (*grant_used)(const char *session, uint32_t number, usec_t used, void *userdata);
        /* A sentence for the log; at most one for a call of ingest_spool(). */
        void (*warn)(const char *text, void *userdata);
        void *userdata;
} IngestHandler;

typedef struct IngestReport {
        uint64_t receipts, grants_used;
        uint64_t damaged, skipped; /* places, and bytes of them, without a record */
        bool torn;                 /* the last record is not whole yet */
} IngestReport;

/* Reads on from where the store says it is, to the end of fd. `final`: nobody writes to it any more, so that a torn record is damage. What was committed
 * stays when a later error is returned: -ESTALE, the spool is shorter than it was (tampering; it is remembered, and nothing more is taken);
 * those of the store, after which the call is to be made again later; of the handler. *ret tells what was committed, with an error too,
 * but for -ENOMEM and an error before anything was read. */
int ingest_spool(Store *store, const char *session, int fd, bool final, const IngestHandler *handler, IngestReport *ret);
