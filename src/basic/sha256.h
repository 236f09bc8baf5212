/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* SHA-256 (FIPS 180-4), to tell whether a text is the one that was accepted. The kernel's own (AF_ALG) may be cut off, and a
 * library for it would be loaded at every start. */
#define SHA256_SIZE 32U /* bytes */

void sha256(const void *data, size_t size, uint8_t ret[SHA256_SIZE]);

/* Two lower-case digits a byte and a NUL; and back: exactly 64 of them, or -EINVAL. */
void sha256_to_string(const uint8_t digest[SHA256_SIZE], char ret[2 * SHA256_SIZE + 1]);
int sha256_from_string(const char *s, size_t size, uint8_t ret[SHA256_SIZE]);
