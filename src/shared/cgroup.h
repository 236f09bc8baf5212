/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Control groups of the unified hierarchy (cgroup v2), where systemd mounts it. Paths are as /proc/PID/cgroup has them: "/user.slice/…". */

#include "basic/macro.h"

/* The group that a process is in; *ret is the caller's to free. -ENODATA: none in the unified hierarchy, or one that was removed. */
int cgroup_of_process(pid_t pid, char **ret);
/* The same from the text of /proc/PID/cgroup. */
int cgroup_parse(const char *text, char **ret);

/* Whether the last component of the path is `unit`. */
bool cgroup_is_unit(const char *path, const char *unit);

/* Where the group is in the file system; *ret is the caller's to free. */
int cgroup_directory(const char *path, char **ret);
/* A descriptor of it. -ENODEV: what is mounted there is not the unified hierarchy. */
int cgroup_open(const char *path);

/* SIGKILL to all in `child` of the group, or in the group itself for "." (Linux 5.14). */
int cgroup_kill(int group, const char *child);

/* Controllers that can be given to groups below; *ret is strv_free()d, NULL for none. */
int cgroup_controllers(int group, char ***ret);

/* Whether a limit of the group, such as "memory.max", is one, and lets no more through than `most`: of "cpu.max" microseconds in a second. */
bool cgroup_limit_holds(int group, const char *file, uint64_t most);

/* How many processes the kernel has killed for want of memory, from an open memory.events. -ENODATA: it does not say. */
int cgroup_read_oom_kills(int events, uint64_t *ret);
int cgroup_parse_oom_kills(const char *text, uint64_t *ret);
