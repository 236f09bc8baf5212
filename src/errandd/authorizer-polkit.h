/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* System mode: polkit is asked, about the caller by its unique name on the bus, never by a process id. uid 0 needs no leave. An operator is owner of
 * everything: what an owner may, it may unasked; for making sessions and for the daemon itself it is asked about as anybody else. Everything but a
 * plain yes is a no: an error, no polkit, one that ends meanwhile, one that says nothing for AUTHORIZE_USEC or, while a user may be typing a
 * password, AUTHORIZE_INTERACTIVE_USEC. */

#include <systemd/sd-bus.h>

#include "basic/clock.h"
#include "errandd/authorizer.h"

#define AUTHORIZE_USEC (25 * USEC_PER_SEC) /* rules may start programs, and polkitd may have to be started */
#define AUTHORIZE_INTERACTIVE_USEC (120 * USEC_PER_SEC)

/* operators: account names, or uids in digits; one that is not there is logged and left out. References the bus, which is the one that callers' names are
 * of. Free it after what asks it. */
int authorizer_polkit_new(sd_bus *bus, char *const *operators, Authorizer **ret);
Authorizer *authorizer_polkit_free(Authorizer *a);
DEFINE_CLEANUP(Authorizer *, authorizer_polkit_free);

/* After the configuration was read again. The old ones stay when it fails. */
int authorizer_polkit_set_operators(Authorizer *a, char *const *operators);

/* For tests: other times than those above. */
void authorizer_polkit_set_timeouts(Authorizer *a, usec_t plain, usec_t interactive);
