/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Hosts of an allowlist or a grant, as text. errandd stores and hands them on; the broker, which matches them, parses them again
 * with its own strict parser and has the last word. What is accepted here is accepted there. */

#include "basic/macro.h"

#define HOST_TEXT_MAX 255U /* "*." and a name of 253 bytes (RFC 1035) */

typedef enum HostTextFlags {
        HOST_TEXT_WILDCARD = 1 << 0, /* "*.name" is fine; not before a single label, not before an address */
        HOST_TEXT_ANY = 1 << 1,      /* "*" alone is fine */
} HostTextFlags;

/* Writes the form that is kept: lower case, without a final dot, an IPv6 address in RFC 5952 form without brackets. -EBADMSG with a
 * static phrase ("has an empty label") for everything else: a port, a path, a scheme, non-ASCII, numbers that only look like an address. */
int host_text_normalize(const char *s, HostTextFlags flags, char ret[static HOST_TEXT_MAX + 1], const char **ret_problem);

/* A normalized "*.name" where anybody can register names beneath: "*.co.uk", "*.github.io". From a short list of the usual ones and a rule for
 * countries' second levels, so that it warns of the mistake and promises nothing. */
bool host_text_covers_strangers(const char *pattern);

/* Both normalized: the pattern names that host, or covers that pattern. */
bool host_text_covers(const char *pattern, const char *host);
