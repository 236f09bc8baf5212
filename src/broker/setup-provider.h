/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts of a setup that concern one provider, for setup.c. */

#include "broker/keys.h"
#include "broker/setup.h"

/* Reads member `id` of "providers" into p, which is zeroed, takes the key out of keys and the CA file out of m. s has its allow_internal.
 * -EBADMSG with *ret_problem to free; p is then half-built, for setup_free(). */
int setup_parse_provider(const Setup *s, Message *m, JsonObject *o, const char *id, Keys *keys, Provider *p, char **ret_problem);

void provider_done(Provider *p);

/* setup-rules.c: members "capabilities" and "strictCapabilities", and "budgets", all of which may be left out; `where` is "" or as
 * "providers.p.". *ret stays NULL without a budget. -EBADMSG as above. */
int setup_parse_capabilities(JsonObject *o, const char *where, Provider *p, char **ret_problem);
int setup_parse_budgets(JsonObject *o, const char *where, Budget **ret, char **ret_problem);

/* Every member of o must be one of the NULL-terminated known; `where` is "" or as "egress.". */
int setup_check_members(JsonObject *o, const char *where, const char *const *known, char **ret_problem);
