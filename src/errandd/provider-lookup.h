/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether this host resolves the brokered providers: tried once at the start and after each reading of the configuration, since it is this host's
 * resolver to fix and a session would only see that its calls fail. In a thread of its own: a resolver that does not answer keeps nobody
 * waiting, and a start is not refused for it. */

#include <systemd/sd-event.h>

#include "errandd/config.h"

typedef struct ProviderLookup ProviderLookup;

/* warnings: sentences, NULL when all is well; the handler's to keep and free. Comes from the loop, once, and may free the lookup. */
typedef void (*ProviderLookupDone)(char **warnings, void *userdata);

/* *ret is NULL when there is nothing to look up. */
int provider_lookup_start(sd_event *event, const Config *c, ProviderLookupDone done, void *userdata, ProviderLookup **ret);
/* What is still under way is left to end by itself. */
ProviderLookup *provider_lookup_free(ProviderLookup *l);
