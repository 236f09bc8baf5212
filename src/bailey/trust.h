/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/options.h"

/* bailey trust FILE, --list, --revoke FILE. Returns the exit code: 0, or 1 after a line that says why not. */
int trust_verb(const Options *o);
