/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whose rights a session's processes have. An ordinary errandd has one account, its own. As root no payload, and nothing that starts one, runs
 * as uid 0: an account is decided once for a session, recorded, and taken on before launcher and shim are executed. */

#include "errandd/manager.h"

#define IDENTITY_GROUPS_MAX 64U

typedef struct Identity {
        uid_t uid;
        gid_t gid;
        gid_t groups[IDENTITY_GROUPS_MAX]; /* supplementary */
        size_t n_groups;
        char name[64]; /* "user" for a uid without an entry */
        char home[256];
} Identity;

/* Of a uid, by the account database. As root, and for uid 0, -EPERM. */
int identity_of(uid_t uid, Identity *ret);
/* Of another account than errandd's: -ENOENT when there is none of that name, -EPERM for root and errandd's own. */
int identity_by_name(const char *name, Identity *ret);

/* What a process of ours becomes between fork and exec; async-signal-safe. 0 or a negative errno; nothing to do for one's own uid. */
int identity_become(const Identity *i);

typedef enum AccountReason {
        ACCOUNT_OWN,     /* errandd is no root */
        ACCOUNT_NAMED,   /* --account */
        ACCOUNT_SUDO,    /* SUDO_UID */
        ACCOUNT_PROJECT, /* the project's owner */
        ACCOUNT_NOBODY,  /* none of them: told with a notice */
} AccountReason;

/* Whom the payload of a session in that project (-EBADF: in none) runs as. `user` is --account's name or number, or NULL. */
int account_decide(const char *user, int project, Identity *ret, AccountReason *ret_reason, Fault *f);

/* Whether that account can work in the directory, found out as that account. A sentence in *f when not; `path` is what the sentence calls it. */
int account_check_project(const Identity *i, int project, const char *path, Fault *f);

/* Whether uid 0 can become that account here at all; a sentence with the reason in *f when not. */
int account_check_change(const Identity *i, Fault *f);

/* A uid that no account, no process and none of taken[] has, for a broker; only for root. */
int account_unused(const uid_t *taken, size_t n_taken, Identity *ret);
