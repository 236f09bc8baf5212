/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An agent's plan as people read it. */

#include "shared/json-view.h"
#include "shim/scrub-chain.h"

/* Of its entries: a line for each, up to PLAN_ENTRIES_MAX, clean, behind "[ ]", "[>]" or "[x]"; *ret is to free. */
int plan_text(const SecretList *secrets, JsonView entries, char **ret);
