/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/failure.h"

/* One clone3 with every namespace that a sandbox has, the network's only if asked for (a run makes that beside other work:
 * network-namespace.h), into `group`, a cgroup's directory, unless that is negative. Like fork(): the pid in the parent, with
 * *ret_pidfd (CLOEXEC, the caller's), 0 in the child, or a negative errno. */
pid_t namespaces_clone(bool network, int group, int *ret_pidfd);

/* The same with a user namespace and no other but, if asked for, the network's. */
pid_t namespaces_clone_user(bool network, int group, int *ret_pidfd);

/* True for the errors of namespaces_clone() that say "not on this host", not "not now". */
bool namespaces_unavailable(int error);

/* In the child: the caller's ids mapped to themselves, the host name set. It is dumpable afterwards. The old /proc must still be in
 * sight; *ret_limits (the caller's) is what namespaces_forbid_more() wants when it no longer is. */
int namespaces_set_up(uid_t uid, gid_t gid, int *ret_limits, Failure *f);

/* The same for a child of namespaces_clone_user(), which keeps the host's name. */
int namespaces_set_up_user(uid_t uid, gid_t gid, int *ret_limits, Failure *f);

/* No further user namespace, and so none of any kind once the capabilities are gone: the limit belongs to the new user namespace, so
 * that nobody inside can raise it again then. */
int namespaces_forbid_more(int limits, Failure *f);

/* Empties the bounding set, which takes nothing of what this process has: nothing that it executes can have more than is left to it. */
int capabilities_bound(Failure *f);

/* Empties all other capability sets, for good. */
int capabilities_drop(Failure *f);
