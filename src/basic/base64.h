/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* The bytes that base64_encode() writes for so many; without a NUL. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4)

/* RFC 4648, section 4, with padding. Returns BASE64_SIZE(size). */
size_t base64_encode(const void *data, size_t size, char *buffer);

/* The canonical form alone: no white space, whole padding, no stray bits. → the size, at most size / 4 * 3, which buffer has; -EBADMSG. */
ssize_t base64_decode(const char *text, size_t size, char *buffer);
