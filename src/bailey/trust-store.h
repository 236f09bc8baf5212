/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which found policy files a person accepted: $XDG_CONFIG_HOME/bailey/trusted, one a line, a digest and the place it was found
 * at. Both have to be the same for a file to apply. Only its owner can read and write it, it is replaced as a whole, and a store that is
 * damaged or that others could have written holds nothing. */

#include "basic/sha256.h"

#define TRUST_STORE_NAME "trusted"
#define TRUST_STORE_SIZE_MAX (1024U * 1024U) /* thousands of projects */

typedef struct TrustEntry {
        char *path;
        uint8_t digest[SHA256_SIZE];
} TrustEntry;

typedef struct TrustStore {
        TrustEntry *entries; /* in the order in which they were accepted, one a path */
        size_t n;
} TrustStore;

TrustStore *trust_store_free(TrustStore *s);
DEFINE_CLEANUP(TrustStore *, trust_store_free);

/* 0 with an empty one when there is none; -EBADMSG with a sentence in *ret_problem (to free) for one that must not be believed;
 * another errno when it cannot be read. uid: whose it has to be, or root's. */
int trust_store_load(const char *config_directory, uid_t uid, TrustStore **ret, char **ret_problem);

const TrustEntry *trust_store_find(const TrustStore *s, const char *path);

/* Accepts that text for that path, in the place of another one, or with digest NULL takes the path out (0 when it was not in).
 * Makes the directory, mode 0700. Returns how many entries were changed, or as above. */
int trust_store_change(const char *config_directory, uid_t uid, const char *path, const uint8_t *digest, char **ret_problem);
/* Takes out whatever has that digest. */
int trust_store_forget(const char *config_directory, uid_t uid, const uint8_t digest[SHA256_SIZE], char **ret_problem);

/* For tests and fuzzing. -EBADMSG or -ENOMEM. */
int trust_store_parse(const char *text, size_t size, TrustStore **ret);
