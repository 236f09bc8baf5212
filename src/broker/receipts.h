/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Receipts of provider calls: queued by the loop, written and fdatasync'ed by one thread at most a second later. A write that fails is
 * tried again, is logged once a minute and never fails a call. No torn record ever stands before a whole one. */

#include <systemd/sd-event.h>

#include "broker/receipt.h"

typedef struct Receipts Receipts;

/* fd is the spool, open for writing (owned from here on, also on failure; -EBADF: receipts are counted and dropped).
 * session is borrowed. */
int receipts_new(const char *session, int fd, Receipts **ret);
/* Writes what is queued, syncs, joins the thread. */
Receipts *receipts_free(Receipts *r);
DEFINE_CLEANUP(Receipts *, receipts_free);

/* Calls the handler, from the loop, when writing has failed: as often as the log says so, at most once a minute. */
int receipts_watch(Receipts *r, sd_event *event, void (*handler)(void *userdata), void *userdata);

/* Never blocks. Of RECEIPT_DENIED one a minute (by receipt->started) is kept; of calls of which a provider saw nothing
 * IDLE_RECEIPTS_BURST at once and then one each IDLE_RECEIPT_USEC, turned away or not. The next one kept carries how many were not, and the log says it within a
 * minute. False when this one was only counted. */
bool receipts_add(Receipts *r, const Receipt *receipt);

/* A grant for once that is used now: written and synced before this returns (the caller dials after), at most two seconds. Negative errno: it
 * was not kept (-EBADF without a spool). Its payload is used (µs since the epoch), session, grant, host. */
int receipts_grant_used(Receipts *r, const char *grant_id, const char *host);
