/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a supervisor is told as it happens, and what waits for one. While none is there, or while it does not read, refusals are counted host by
 * host, and uses of grants and a spool that fails are kept; whoever comes next is told all of it once. A use that the spool holds
 * is told as it happens or not at all. */

#include <systemd/sd-event.h>

#include "broker/refusals.h"

typedef struct Notices Notices;

int notices_new(sd_event *event, Notices **ret);
Notices *notices_free(Notices *n);
DEFINE_CLEANUP(Notices *, notices_free);

/* fd is the supervisor's connection, borrowed: it is told what waits. notices_detach() before fd is closed. */
void notices_attach(Notices *n, int fd);
void notices_detach(Notices *n);

void notices_refused(Notices *n, const char *host, uint16_t port);
/* in_spool: whoever reads the spool learns of it. */
void notices_grant_used(Notices *n, const char *id, const char *host, bool in_spool);
void notices_receipt_failed(Notices *n);

/* Tells now, not in its minute, what is left of the refusals. */
void notices_sum_up(Notices *n);

uint64_t notices_refused_total(const Notices *n);
