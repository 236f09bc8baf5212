/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* receipts.db in the state directory: what each provider call came to, and how far each session's spool is read. errandd alone writes it.
 * The spools stay until their sessions are collected, so a database that was lost or set aside is filled from them again. */

#include "basic/clock.h"
#include "errandd/record-dir.h"
#include "shared/spool.h"

#define STORE_QUERY_MAX 1000U
#define STORE_STEPS_MAX 1000000U /* of SQLite's machine in one query, some tens of milliseconds: some 150 000 receipts that do not match */
#define STORE_JOURNAL_PAGES 1000 /* of 4 KiB, as in SQLite */
#define STORE_BUSY_MSEC 500 /* somebody may look into the database with a tool of their own */

typedef struct Store Store;

/* Errors of all functions here: -ENOSPC disk full, -EAGAIN locked by somebody else, -EROFS, -EIO, -EUCLEAN damaged, -ENOMEM. SQLite's own words
 * and its code for the last one, for the log. */
const char *store_error_text(const Store *s);

/* Opens or makes it (0600), by the path of the state directory. A database that is damaged beyond opening is set aside under another name and a new
 * one begun: then 1 is returned with *ret_problem, a sentence (to free). -EPROTONOSUPPORT: made by a newer version. */
int store_open(const char *state_dir, Store **ret, char **ret_problem);
Store *store_close(Store *s);
/* Closed without a word to the disk, which may not answer: its journal stays beside it, and the next one who opens it has everything. */
Store *store_leave(Store *s);
DEFINE_CLEANUP(Store *, store_close);

/* Its journal is so long that it should go into the database: for store_checkpoint(), which sleeps on the disk, in any thread, beside the store that is open. */
bool store_grown(const Store *s);
int store_checkpoint(const char *state_dir);

/* Renames receipts.db and what belongs to it to receipts.db.damaged-SECONDS…; for a damage found later, with the store closed. */
int store_set_aside(const char *state_dir, char **ret_problem);

typedef struct StoredReceipt {
        uint64_t number;  /* of the object /org/errand1/receipt/NUMBER; never used again */
        usec_t ended;     /* realtime */
        char *session, *provider, *credential, *host, *method, *path;
        uint64_t query;   /* only its length */
        uint64_t status;  /* 0 = none */
        usec_t duration;
        uint64_t up, down;
        ReceiptOutcome outcome;
        uint64_t unrecorded;
        uint64_t tokens; /* counted where there is a budget of them; 0 = none */
} StoredReceipt;

void stored_receipt_done(StoredReceipt *r);

typedef struct StoredReceiptList {
        StoredReceipt *receipts;
        size_t n_receipts;
} StoredReceiptList;

void stored_receipt_list_done(StoredReceiptList *l);

typedef struct ReceiptFilter {
        const char *session, *provider; /* NULL: any */
        char *const *sessions;          /* those of one of these; NULL: of any. Not looked at where there is a session */
        ReceiptOutcome outcome;         /* _RECEIPT_OUTCOME_INVALID: any */
        usec_t since;                   /* ended then or later */
        uint64_t before;                /* numbers below it; 0 = from the newest on */
        size_t limit;                   /* 0 or more than STORE_QUERY_MAX: STORE_QUERY_MAX */
} ReceiptFilter;

#define RECEIPT_FILTER_ANY ((ReceiptFilter){.outcome = _RECEIPT_OUTCOME_INVALID})

/* Newest first. -ETIME: after STORE_STEPS_MAX it was not done. */
int store_query(Store *s, const ReceiptFilter *f, StoredReceiptList *ret);

/* What a session's calls to one provider have come to. */
typedef struct StoredSpending {
        char *provider;
        uint64_t requests; /* calls that were passed on, whatever became of them */
        uint64_t bytes, tokens;
} StoredSpending;

/* Of every provider that the session called; the list is for stored_spending_free(). */
int store_sum_spending(Store *s, const char *session, StoredSpending **ret, size_t *ret_n);
void stored_spending_free(StoredSpending *list, size_t n);

/* How far a session's spool is in the database. */
typedef struct SpoolPosition {
        uint64_t offset;  /* everything before it is in */
        uint64_t length;  /* of the file, as seen last */
        uint64_t damaged; /* places that held no record */
        bool tampered;    /* it was shorter once; nothing more is taken from it */
} SpoolPosition;

int store_get_spool(Store *s, const char *session, SpoolPosition *ret); /* all zero when it is not known */

/* Removes a session's receipts and its spool's position, in one transaction. */
int store_collect(Store *s, const char *session);

/* For ingest.c: receipts and the position that they led to become durable together. store_rollback() after any failure. */
int store_begin(Store *s);
int store_add(Store *s, const StoredReceipt *r); /* its number is given here */
int store_set_spool(Store *s, const char *session, const SpoolPosition *position);
int store_commit(Store *s);
void store_rollback(Store *s);
