/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* Bytes of the valid UTF-8 sequence at s[0…size) (RFC 3629: shortest form, no surrogates, at most U+10FFFF), 0 if none. */
size_t utf8_sequence(const unsigned char *s, size_t size);
bool utf8_valid(const char *s);
