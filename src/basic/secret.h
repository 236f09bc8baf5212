/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* The one type that holds keys, credentials and stand-ins: in pages of its own that are locked, kept out of core files and
 * of forked children, and wiped when freed. There is no way to print one but "[redacted]". */
typedef struct Secret Secret;

/* At most 64 KiB. Copies; the caller wipes its own. mlock that fails for want of RLIMIT_MEMLOCK is not an error. */
int secret_new(const void *data, size_t size, Secret **ret);
Secret *secret_free(Secret *s);
DEFINE_CLEANUP(Secret *, secret_free);

/* size bytes and then a NUL; valid while the secret lives. */
const char *secret_data(const Secret *s);
size_t secret_size(const Secret *s);

/* Overwrites memory in a way that the compiler keeps. */
void secret_wipe(void *data, size_t size);

/* prefix + 2 * n_bytes hex digits from getrandom(2); n_bytes at most 64. */
int secret_mint(const char *prefix, size_t n_bytes, Secret **ret);
