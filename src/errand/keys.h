/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is typed into an attached terminal, and the two keys that are ours: Ctrl-] d detaches, Ctrl-] Ctrl-] is one Ctrl-]. Everything else
 * goes to the program, Ctrl-C and Ctrl-Z too. */

#include "basic/macro.h"

#define KEY_PREFIX '\x1d' /* Ctrl-] */
#define KEY_DETACH 'd'

typedef struct Keys {
        bool prefix; /* it came, and what follows decides */
} Keys;

/* Writes what is for the program into out, which holds size + 1 bytes; returns how many. *ret_detach: what follows was not read. */
size_t keys_filter(Keys *k, const char *data, size_t size, char *out, bool *ret_detach);
