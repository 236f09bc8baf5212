/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/audit-calls.h"
#include "bailey/failure.h"

/* Whether this kernel takes filters that answer with an error. */
bool seccomp_available(void);

/* Loads the filter that was generated at build time; without `internet` it refuses internet sockets too, for want of a
 * network namespace, and without `group_signals` signals to the own process group, which reach the caller's where Landlock does
 * not scope them. no_new_privs must be set. */
int seccomp_load(bool internet, bool group_signals, Failure *f);

/* Before it, where there is no PID namespace: of no process but the calling one can limits be set. */
int seccomp_load_own_limits(Failure *f);

/* Has the calls of audit-calls.h wait until somebody at *ret_listener, which is the caller's to close, has let them go on. Of this
 * process and all that it makes; beside any other filter. no_new_privs must be set. */
int seccomp_listen(int *ret_listener, Failure *f);

/* Which of them a number is; NULL for none. */
const AuditCall *seccomp_audit_call(uint32_t architecture, int number);
