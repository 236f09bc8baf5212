/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/failure.h"
#include "bailey/gap.h"
#include "bailey/plan.h"

/* The newest ABI whose rights are handled here; a newer kernel is used as this one. */
#define LANDLOCK_ABI_MAX 7

/* The kernel's ABI, at most LANDLOCK_ABI_MAX, 0 without Landlock. */
int landlock_abi(void);

/* The gaps of an ABI, where TCP ports are to be restricted (`ports`) and where they are not. */
GapSet landlock_gaps(int abi, bool ports);

/* Restricts this thread for good by the plan's rules, by their host paths when not isolated. Rules whose path is not there
 * are left out. no_new_privs must be set. With abi 0 nothing happens. */
int landlock_restrict(const Plan *plan, int abi, bool isolated, Failure *f);

/* Rules that leave whoever is restricted by them, and what it starts, nobody else to send signals to. -EBADF for an ABI that cannot, by
 * which nothing is restricted. no_new_privs must be set. */
int landlock_signals_new(int abi, int *ret);
int landlock_signals_restrict(int ruleset);

/* Rights to be tried one by one. */
typedef enum LandlockRight {
        LANDLOCK_RIGHT_READ,     /* ABI 1, Linux 5.13 */
        LANDLOCK_RIGHT_REFER,    /* ABI 2, Linux 5.19 */
        LANDLOCK_RIGHT_TRUNCATE, /* ABI 3, Linux 6.2 */
        LANDLOCK_RIGHT_CONNECT,  /* ABI 4, Linux 6.7 */
        LANDLOCK_RIGHT_IOCTL,    /* ABI 5, Linux 6.10 */
        LANDLOCK_RIGHT_SCOPE,    /* ABI 6, Linux 6.12 */
        _LANDLOCK_RIGHT_MAX,
        _LANDLOCK_RIGHT_INVALID = -EINVAL,
} LandlockRight;

/* Has that right refused to this thread, everywhere and for good. 0 or a negative errno; no_new_privs must be set. */
int landlock_restrict_right(LandlockRight right);
