/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a process and all below it use, read from /proc: without a cgroup there is no better account. */

#include "basic/clock.h"

typedef struct Usage {
        uint64_t memory_bytes; /* resident; what processes share is counted in each */
        uint64_t processes;
        usec_t cpu_usec;       /* of those that live, and of their children that were waited for */
} Usage;

int usage_read(pid_t root, Usage *ret);

/* One line of /proc/PID/stat. -EBADMSG when it is none. */
int usage_parse_stat(const char *text, pid_t *ret_pid, pid_t *ret_parent, uint64_t *ret_ticks, uint64_t *ret_pages);
