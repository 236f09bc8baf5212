/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a program has no business doing unless somebody knows why it does: one table of places, with the reason for each. */

#include "bailey/access.h"

/* The reason, NULL for an access like others. home: the caller's. *ret_never (NULL: not asked): no policy can grant it. */
const char *access_risk(const Access *a, const char *home, bool *ret_never);
