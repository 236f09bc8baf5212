/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The gate's one table: which permission a member of the bus API needs. A member that is not in it is denied. */

#include "basic/macro.h"

typedef enum Permission {
        PERMISSION_PUBLIC,  /* everybody who reaches the bus: says nothing about any session */
        PERMISSION_CREATE,  /* make a session; others: in a project that has another owner */
        PERMISSION_CONTROL, /* start, stop, signal; talk to its agent */
        PERMISSION_ATTACH,  /* the terminal */
        PERMISSION_GRANT,   /* give and take hosts */
        PERMISSION_READ,    /* see it, its transcript, grants and receipts */
        PERMISSION_COLLECT, /* remove its record, state and receipts */
        PERMISSION_MANAGE,  /* the daemon itself */
        PERMISSION_ROOT,    /* how the daemon tells what happens: uid 0, and nobody is asked; where all is one account's, that account */
        _PERMISSION_MAX,
        _PERMISSION_INVALID = -EINVAL,
} Permission;

typedef enum MemberKind {
        MEMBER_METHOD,
        MEMBER_READ,  /* of a property, by Get or as one of GetAll */
        MEMBER_WRITE, /* of a property, by Set */
        MEMBER_SAID,  /* a command in the text of Say (say.h), whose permission counts in place of Say's own */
} MemberKind;

typedef enum ActionScope {
        SCOPE_NONE,   /* no session is meant: public, or the own action decides */
        SCOPE_OBJECT, /* the session that the object, or a method's first argument, belongs to; decides between own and others */
        SCOPE_FILTER, /* answers with what the caller may read, be it nothing */
} ActionScope;

typedef struct Action {
        const char *interface;
        const char *member;
        MemberKind kind;
        Permission permission;
        ActionScope scope;
        unsigned descriptors; /* that it answers with */
        bool large; /* its answer may have a MiB and more: it waits while the caller has not taken others (BUS_QUEUED_LARGE_MAX) */
} Action;

/* NULL: not in the table, so denied. Properties.Get, GetAll and Set are not in it: they are looked up by the property they name. */
const Action *action_find(const char *interface, const char *member, MemberKind kind);

/* polkit's action id for the caller's own session, or for another's. NULL for public and root, which polkit is not asked about. */
const char *permission_action_id(Permission p, bool own);

/* The table, for tests and for those that compare it with the vtables. */
const Action *action_table(size_t *ret_n);
