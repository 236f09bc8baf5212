/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The sealed memfd of keys, read without a JSON library, whose copies could not be wiped:
 *   {"credential":"errand-session-…","providers":{"anthropic":{"key":"…","standIn":"errand-session-…"}}} */

#include "basic/macro.h"
#include "basic/secret.h"

#define KEYS_SIZE_MAX (64U * 1024U)
#define KEY_SIZE_MAX 4096U       /* of a provider's key; it must fit into a request head */
#define CREDENTIAL_SIZE_MAX 256U /* of the credential and of a stand-in: they travel in URLs and variables */
#define PROVIDER_ID_MAX 32U

typedef struct KeysEntry {
        char id[PROVIDER_ID_MAX + 1];
        Secret *key;      /* 1…KEY_SIZE_MAX bytes of visible ASCII */
        Secret *stand_in; /* letters, digits, '-' and '_': no client encodes them differently from another */
} KeysEntry;

typedef struct Keys {
        Secret *credential; /* as a stand-in */
        KeysEntry *entries;
        size_t n_entries;
} Keys;

Keys *keys_free(Keys *k);
DEFINE_CLEANUP(Keys *, keys_free);

/* fd stays the caller's; its offset does not matter. -EBADMSG with *ret_problem, a sentence to free, that quotes nothing of the content. */
int keys_read(int fd, Keys **ret, char **ret_problem);

KeysEntry *keys_find(Keys *k, const char *id);

/* [a-z0-9-]{1,32} */
bool provider_id_valid(const char *id, size_t size);
