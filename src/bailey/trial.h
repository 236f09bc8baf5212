/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The ways to try a mechanism. Each is called in a process of its own, which ends afterwards. */

#include "bailey/mechanism.h"

/* trial-namespaces.c: one kind (argument: its CLONE_NEW flag), all as a run has them, and what is made in them. */
void trial_namespace(const Mechanism *m, Outcome *ret);
void trial_namespaces(const Mechanism *m, Outcome *ret);
typedef enum TrialPart {
        TRIAL_MOUNT_API,
        TRIAL_PIVOT_ROOT,
        TRIAL_PROC,
        TRIAL_SYSFS,
        TRIAL_TERMINAL,
        TRIAL_NO_MORE_NAMESPACES,
} TrialPart;
void trial_part(const Mechanism *m, Outcome *ret);

/* trial-filter.c: Landlock (argument: a LandlockRight), seccomp. */
void trial_landlock(const Mechanism *m, Outcome *ret);
void trial_seccomp(const Mechanism *m, Outcome *ret);
void trial_seccomp_notification(const Mechanism *m, Outcome *ret);

/* trial-host.c: what is the host's to give. */
void trial_control_group(const Mechanism *m, Outcome *ret);
void trial_tun(const Mechanism *m, Outcome *ret);
void trial_nftables(const Mechanism *m, Outcome *ret);
void trial_pasta(const Mechanism *m, Outcome *ret);

/* trial-namespaces.c: runs `inner` in all namespaces of a run, set up as far as ids, loopback and host name; `limits` is borrowed. */
void trial_inside(void (*inner)(const Mechanism *m, int limits, Outcome *ret), const Mechanism *m, Outcome *ret);

void outcome_works(Outcome *o, const char *format, ...) _printf_(2, 3); /* an empty text is none */
void outcome_fails(Outcome *o, int error, const char *format, ...) _printf_(3, 4); /* error 0: the text says it all */
void outcome_fails_at(Outcome *o, const Failure *f);
