/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The system's trusted certificates, one list for the process. They cost some 20 ms and 4 MiB, so they are read when a provider is called for the
 * first time, and by a thread: the loop goes on meanwhile. */

#include <gnutls/x509.h>
#include <systemd/sd-event.h>

#include "basic/macro.h"

typedef struct TrustWait TrustWait;

bool trust_is_loaded(void);

/* Calls handler once, from the loop, when the list is there; *ret is gone then. Begins the loading if need be. */
int trust_wait(sd_event *event, void (*handler)(void *userdata), void *userdata, TrustWait **ret);
TrustWait *trust_wait_cancel(TrustWait *w);

/* The list, which stays the module's; loads it here and now when it is not there. NULL: out of memory. */
gnutls_x509_trust_list_t trust_get(void);
/* Nobody waits and nobody uses it. */
void trust_forget(void);
