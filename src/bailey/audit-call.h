/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One call of a process that waits: read from its memory, and once it is known to be its own, kept where the plan does not grant it. */

#include "bailey/audit-calls.h"
#include "bailey/audit-notify.h"

#define AUDITED_MAX 8U /* two paths, or a program and the interpreters of interpreters that the kernel follows */

typedef struct AuditedPath {
        char path[PATH_MAX]; /* in the process's view, resolved */
        unsigned operations; /* of AccessOperation */
        bool create;         /* when it is not there */
        char **links;        /* that it led over, where they stand */
} AuditedPath;

typedef struct AuditedCall {
        AuditedPath *paths;
        size_t n_paths;
        char address[128]; /* of a socket, "" for none */
        AccessKind kind;   /* of it */
        unsigned operations;
        bool unreadable;
        bool first;        /* the target's own start */
} AuditedCall;

/* *ret is empty before. */
void audit_call_read(Audit *a, const AuditCall *call, AuditedCall *ret);
void audit_call_keep(Audit *a, const AuditedCall *call);
void audit_call_done(AuditedCall *call);
