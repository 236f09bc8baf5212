/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Takes every secret of a list out of a stream of bytes, wherever the pieces are cut. */

#include "basic/macro.h"
#include "shared/scrub.h"

typedef struct SecretList SecretList;

/* Reads SECRET\0 … from a memfd that is sealed against change. Longer ones come first, so that one that begins another does not leave its
 * end behind. -EINVAL: not sealed, or not so ended; -E2BIG: over SECRETS_MAX or SECRETS_BYTES_MAX. */
int secret_list_read(int fd, SecretList **ret);
SecretList *secret_list_free(SecretList *l);
DEFINE_CLEANUP(SecretList *, secret_list_free);

typedef struct ScrubChain ScrubChain;

/* The list is borrowed and must outlive the chain. */
int scrub_chain_new(const SecretList *secrets, ScrubChain **ret);
ScrubChain *scrub_chain_free(ScrubChain *c);
DEFINE_CLEANUP(ScrubChain *, scrub_chain_free);

/* *ret holds until the next call for the chain. */
int scrub_chain_push(ScrubChain *c, const char *data, size_t size, const char **ret, size_t *ret_size);
/* The end of the stream: what was held back. */
int scrub_chain_finish(ScrubChain *c, const char **ret, size_t *ret_size);

/* A whole text at once; *ret is the caller's to free. */
int scrub_chain_text(const SecretList *secrets, const char *text, char **ret);
