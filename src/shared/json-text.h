/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

#define JSON_TEXT_DEPTH_MAX 64U

/* Is this one JSON text of RFC 8259, nested at most depth_max (≤ JSON_TEXT_DEPTH_MAX) deep? Asked before json-glib reads it, which also
 * takes comments, single quotes, hexadecimal and octal numbers, raw controls and a second text after the first, ends a string at
 * \u0000, and recurses without a limit. -EBADMSG: it is not; -E2BIG: too deep. UTF-8 is the caller's to check. */
int json_text_check(const char *data, size_t size, unsigned depth_max);

/* The end of the string whose opening quote is at p, past its closing one; NULL when it is malformed. Its escapes name no NUL and no half of
 * a surrogate pair. */
const char *json_text_string_end(const char *p, const char *end);
