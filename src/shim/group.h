/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The control group that was made around a session's processes; the shim is outside of it. */

#include <systemd/sd-event.h>

#include "basic/macro.h"

typedef struct Group Group;

/* The group of the process, which has to be that of `unit`: else -EXDEV. *ret_directory (to free) is where it lies. What of it cannot be
 * reached is told in the log; then there is less to say and to end. */
int group_new(sd_event *event, pid_t pid, const char *unit, Group **ret, char **ret_directory);
Group *group_free(Group *g);
DEFINE_CLEANUP(Group *, group_free);

/* These take NULL, which is a session without one. */

/* SIGKILL to all in the group's "payload", where bailey keeps the session's own processes; "." is all of it. -ENOENT: there is none. */
int group_kill(const Group *g, const char *child);
/* Processes that the kernel ended at a limit of memory, as far as it was seen. */
uint64_t group_oom_kills(Group *g);
