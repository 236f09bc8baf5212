/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/options.h"

/* bailey profile list, and bailey profile show NAME. Each returns the exit code: 0, or 1 after a line that says why not. */
int profile_list_verb(const Options *o);
int profile_show_verb(const Options *o);
