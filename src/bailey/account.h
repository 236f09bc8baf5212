/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whose work a run is. uid 0 never runs a payload: root becomes another account right after its options were read, before any
 * policy is looked at. */

#include "basic/macro.h"

typedef struct Account {
        uid_t uid;
        gid_t gid;
        char *name;      /* "user" for a uid without an entry */
        char *home;      /* of its entry; "/" without one */
        char *group_name;
        bool changed;    /* root became it: the caller's HOME and XDG_* are root's and mean nothing */
} Account;

/* /etc/passwd and /etc/group for a sandbox: root, the account, nobody. home: as it is inside. */
int account_files(const Account *a, const char *home, char **ret_passwd, char **ret_group);

void account_done(Account *a);

/* Settles the account and drops to it for good: groups, gid, uid, capabilities. `user` is a name or a uid, NULL: the caller, or
 * for root SUDO_UID and else the owner of the working directory. Logs why not and returns a negative errno. */
int account_settle(const char *user, Account *ret);

/* false: the caller is root, and nothing says for whom, so that account_settle() would fail. */
bool account_is_meant(const char *user);
