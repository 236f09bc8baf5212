/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a provider's key travels in a request. The one list of it: the configuration's words, the broker's setup and the broker's deeds. */

#include "basic/macro.h"

typedef enum Placement {
        PLACEMENT_BEARER,    /* Authorization: Bearer KEY */
        PLACEMENT_X_API_KEY, /* x-api-key: KEY */
        PLACEMENT_BASIC,     /* Authorization: Basic base64(USER:KEY), as git hosts and package registries take tokens (RFC 7617) */
        PLACEMENT_EITHER,    /* stand-in in either of the first two; key as bearer, and in x-api-key too when the session sent that */
        PLACEMENT_HEADER,    /* NAME: KEY, in a header that the configuration names */
        _PLACEMENT_MAX,
        _PLACEMENT_INVALID = -EINVAL,
} Placement;

/* What a configuration can say, in the order of the enum; the others follow from what else it says. */
#define PLACEMENT_WORDS "bearer", "x-api-key", "basic"

#define PLACEMENT_USER_DEFAULT "x-access-token" /* most git hosts take any name beside a token, and this one says what it is */
#define PLACEMENT_USER_MAX 128U
#define PLACEMENT_HEADER_MAX 64U

const char *placement_to_string(Placement p); /* "bearer", "x-api-key", "basic", "either", "header" */
Placement placement_from_string(const char *s);

/* NULL when name can be a header that carries a key, else a phrase that completes "VALUE …": no token of RFC 9110, or a header that frames,
 * routes or codes a message. */
const char *placement_header_problem(const char *name);

/* The same for the user's name before the ':' of Basic: visible ASCII without a ':'. */
const char *placement_user_problem(const char *user);
