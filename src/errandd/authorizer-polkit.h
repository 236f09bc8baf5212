/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* System mode: polkit is asked, about the caller by its unique name on the bus, never by a process id. uid 0 needs no leave. An operator is owner of
 * everything: what an owner may, it may unasked; for making sessions and for the daemon itself it is asked about as anybody else. Everything but a
 * plain yes is a no: an error, no polkit, one that ends meanwhile, one that says nothing for AUTHORIZE_USEC or, while a user may be typing a
 * password, AUTHORIZE_INTERACTIVE_USEC.
 *
 * What a caller will most likely ask for next polkit is asked about ahead, in the same words, but never so that it asks a user. Its answer counts if it is
 * a yes, for the first check of exactly the same request by the same unique name, within AUTHORIZE_AHEAD_USEC of the question; a check that comes
 * while it is still out waits for it. Anything else leads to the question as if none had been asked: another answer, and whatever may change
 * it, which is the signal by which polkit tells that rules, actions or logins are others now, another polkit, other operators. A rule that goes by
 * something else, as a clock, is so believed for AUTHORIZE_AHEAD_USEC at most. Without those signals nothing is asked ahead. */

#include <systemd/sd-bus.h>

#include "basic/clock.h"
#include "errandd/authorizer.h"

#define AUTHORIZE_USEC (25 * USEC_PER_SEC) /* rules may start programs, and polkitd may have to be started */
#define AUTHORIZE_INTERACTIVE_USEC (120 * USEC_PER_SEC)
#define AUTHORIZE_AHEAD_USEC (1 * USEC_PER_SEC) /* a program calls within milliseconds */
#define AUTHORIZE_ACCOUNT_MAX 16U /* questions about one account that polkit has, those that were withdrawn or whose time is over, and not answered, too */
#define AUTHORIZE_ALL_MAX 24U     /* about all accounts: of errandd's calls the bus daemon lets 128 be without an answer, and most are for pings (bus-limits.h) */
#define AUTHORIZE_FIRST_MAX 30U   /* where an account has none yet */
#define AUTHORIZE_AHEAD_MAX 16U /* asked ahead and not used yet; of them one of each account, so that it has polkit asked for nothing once at a time */

/* operators: account names, or uids in digits; one that is not there is logged and left out. References the bus, which is the one that callers' names are
 * of. Free it after what asks it. */
int authorizer_polkit_new(sd_bus *bus, char *const *operators, Authorizer **ret);
Authorizer *authorizer_polkit_free(Authorizer *a);
DEFINE_CLEANUP(Authorizer *, authorizer_polkit_free);

/* After the configuration was read again. The old ones stay when it fails. */
int authorizer_polkit_set_operators(Authorizer *a, char *const *operators);

/* For tests: other times than those above. */
void authorizer_polkit_set_timeouts(Authorizer *a, usec_t plain, usec_t interactive);
void authorizer_polkit_set_ahead(Authorizer *a, usec_t ahead);
