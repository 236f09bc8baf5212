/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Short lists of the numbers of prompts and questions, each in it once, in the order in which they came. */

#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */

#include "shared/message.h"

bool numbers_has(const uint64_t *list, size_t n, uint64_t number);
/* True: it was in the list, and is there no more. */
bool numbers_take(uint64_t *list, size_t *n, uint64_t number);
/* A member of o that is a list of numbers above 0, at most `max` different ones, for which ret has room. -ENOENT, or -EBADMSG: it is none. */
int numbers_read(JsonObject *o, const char *name, size_t max, uint64_t ret[], size_t *ret_n);
