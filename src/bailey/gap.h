/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What this host could not give a run. A gap is always told; --strict refuses unless --accept-gap names it. */

#include "basic/json-writer.h"

typedef enum Gap {
        GAP_NAMESPACES,        /* no user namespaces: ungranted paths and host processes stay visible */
        GAP_ISOLATION,         /* --no-isolate: the same, but for the network */
        GAP_LANDLOCK,          /* no Landlock at all */
        GAP_LANDLOCK_REFER,    /* ABI < 2: files cannot be renamed between directories */
        GAP_LANDLOCK_TRUNCATE, /* ABI < 3: truncation is not restricted */
        GAP_LANDLOCK_IOCTL,    /* ABI < 5: device ioctls are not restricted */
        GAP_LANDLOCK_SCOPE,    /* ABI < 6: abstract sockets and signals are held by the namespaces alone */
        GAP_LANDLOCK_NETWORK,  /* ABI < 4: TCP ports are not restricted, where they should be */
        GAP_SECCOMP,           /* no system call filter */
        GAP_SYSFS,             /* no fresh /sys: there is none inside */
        GAP_NESTED_DENY,       /* without isolation: a deny inside a granted directory */
        GAP_READ_ONLY,         /* without isolation: a read_only inside a writable directory */
        GAP_PRIVATE_TMP,       /* without isolation */
        GAP_PRIVATE_HOME,      /* without isolation: the home is not at the real home's path */
        GAP_PROXY_NET,         /* --proxy-net: no private network, the host's is used */
        GAP_LOOPBACK_RULE,     /* --proxy-net: no packet filter rule against forwarded loopback */
        GAP_RESOURCES,         /* memory, pids_max or cpu_percent is set, and the kernel does not hold it */
        _GAP_MAX,
        _GAP_INVALID = -EINVAL,
} Gap;

typedef uint32_t GapSet; /* bit (1 << Gap) */

const char *gap_to_string(Gap g);       /* "landlock-scope": the name --accept-gap takes */
Gap gap_from_string(const char *s);
const char *gap_describe(Gap g);        /* one sentence without a full stop, for people */

/* "not_enforced": [{"name", "text"}]. */
void gaps_add_json(JsonWriter *w, GapSet gaps);
