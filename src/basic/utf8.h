/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* Bytes of the valid UTF-8 sequence at s[0…size) (RFC 3629: shortest form, no surrogates, at most U+10FFFF), 0 if none. */
size_t utf8_sequence(const unsigned char *s, size_t size);
/* The sequence of a code point up to U+10FFFF that is no surrogate, at most four bytes; how many. */
size_t utf8_put(unsigned code, char *out);
/* The most bytes of s[0…size), which is valid up to there, that are at most max and whole characters. */
size_t utf8_cut(const char *s, size_t size, size_t max);
bool utf8_valid(const char *s);
