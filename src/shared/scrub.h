/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Replaces every occurrence of a key in a stream by "[redacted]". Holds back only bytes that could be the start of the key,
 * so an event of an event stream leaves in the same write it came in. */

#include "basic/macro.h"
#include "basic/secret.h"

#define SCRUB_REPLACEMENT "[redacted]"
#define SCRUB_SECRET_MIN 8U /* bytes; shorter ones are left alone, as replacing them would mangle ordinary text */

typedef struct Scrub Scrub;

/* key is borrowed and must outlive the scrubber. A key shorter than SCRUB_SECRET_MIN makes one that passes all through. */
int scrub_new(const Secret *key, Scrub **ret);
Scrub *scrub_free(Scrub *s);
DEFINE_CLEANUP(Scrub *, scrub_free);

/* Most bytes that scrub_push(n) or scrub_finish() can give. */
size_t scrub_bound(const Scrub *s, size_t n);

/* Takes data[0…size), writes what is safe to pass on to out, returns its length. out has scrub_bound(size) bytes. */
size_t scrub_push(Scrub *s, const char *data, size_t size, char *out);

/* The end of the stream: gives what was held back (it is no key). */
size_t scrub_finish(Scrub *s, char *out);

/* A whole value at once, such as a header's. *ret is the caller's to free. */
int scrub_value(const Secret *key, const char *data, size_t size, char **ret, size_t *ret_size);
