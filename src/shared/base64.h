/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* RFC 4648 with padding, for Basic credentials. */

#include "basic/macro.h"

#define BASE64_SIZE(n) (((n) + 2) / 3 * 4)

/* ret has BASE64_SIZE(size) bytes, all of which are written; no NUL. */
void base64_encode(const char *data, size_t size, char *ret);

/* The canonical form alone: no white space, whole padding, no stray bits. → the size, at most size / 4 * 3, which ret has; -EBADMSG. */
ssize_t base64_decode(const char *text, size_t size, char *ret);
