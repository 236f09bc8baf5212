/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One shim that is started before there is a session for it: to execute it and to load its libraries takes longer than all else that a launcher
 * does for one. It is nobody's yet, so it neither counts nor keeps the launcher; whatever becomes of it, a session can be started without.
 *
 * Where errandd says which session comes, the first process of that is forked, too, and its scope made. Nothing runs in it. */

#include "launch/scope.h"
#include "launch/launcher.h"

typedef struct ShimTaken {
        pid_t pid;
        int fd;        /* for shim_hand_over() */
        Scope *scope;  /* around its first process; NULL: none was asked for */
        pid_t first;
        int first_fd;  /* pidfd; to be kept until the scope is made */
        bool made;     /* else scope_hand_over() is for the caller to call */
} ShimTaken;

/* Starts one, if there is none, a while after the last of these calls, where the launcher keeps one: never on the way of a session. */
void shim_ahead_later(Launcher *l);

/* Which scope comes, in place of what was said before; NULL: none does. The plan is taken. */
void shim_ahead_prepare(Launcher *l, ScopePlan *plan);

/* For a session with that scope, or none (NULL): the one that waits, now the caller's as a child of this process is. -ENOENT: there is none, or it
 * is another session's. One of this session with another scope than is wanted now is ended. */
int shim_ahead_take(Launcher *l, const ScopePlan *plan, ShimTaken *ret);

void shim_ahead_end(Launcher *l); /* and no other comes */
