/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Host names as a client or an administrator wrote them, and the allowlist's patterns. */

#include "basic/macro.h"
#include "broker/http1.h"

#define HOST_NAME_MAX_BYTES 253U /* RFC 1035 */

typedef enum HostKind {
        HOST_NAME,
        HOST_IPV4, /* canonical dotted quad */
        HOST_IPV6, /* was in brackets; kept in RFC 5952 form without them */
} HostKind;

typedef struct Host {
        HostKind kind;
        char name[HOST_NAME_MAX_BYTES + 1]; /* lower case ASCII, one trailing dot removed */
} Host;

/* "host:port", "[v6]:port"; the port may be left out when default_port is not 0. The grammar is an allow-list: letters, digits,
 * '-', '_', '.', or a bracketed IPv6 literal without a zone, then ":" and 1 to 5 digits without a leading zero. -EBADMSG with a static
 * phrase for all else: userinfo, percent, non-ASCII, empty labels, labels over 63, two trailing dots, and names whose last
 * label is a number or 0x… but that are not a canonical dotted quad. -ERANGE for a port outside 1…65535. */
int host_parse_authority(Slice text, uint16_t default_port, Host *ret, uint16_t *ret_port, const char **ret_problem);

/* A host alone, as in a grant or a list. */
int host_parse(const char *text, Host *ret, const char **ret_problem);

typedef enum PatternKind {
        PATTERN_ANY,    /* "*" */
        PATTERN_EXACT,  /* a Host */
        PATTERN_BELOW,  /* "*.name": one or more labels below name, not name itself */
} PatternKind;

typedef struct HostPattern {
        PatternKind kind;
        Host host; /* not for ANY; for BELOW without "*." */
} HostPattern;

/* -EBADMSG with a static phrase for every other use of '*'. Names given in Unicode are not converted here: A-labels only. */
int host_pattern_parse(const char *text, HostPattern *ret, const char **ret_problem);
bool host_pattern_matches(const HostPattern *pattern, const Host *host);
bool host_patterns_match(const HostPattern *list, size_t n, const Host *host);
/* The text form; buffer of HOST_NAME_MAX_BYTES + 3. */
const char *host_pattern_format(const HostPattern *pattern, char *buffer);
