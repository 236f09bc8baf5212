/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What errandd can make a launcher hold, and every time limit, with its reason. */

#include "basic/clock.h"

#define SESSIONS_MAX 512U             /* live at once; errandd has a lower limit of its own */
#define HELPERS_MAX 64U               /* probes, collections and measurements at once */
#define COMMAND_WORDS_MAX 4096U       /* a 64 KiB message holds no more of any use */
#define GAPS_MAX 32U                  /* bailey knows 13 */
#define GRACE_MS_MAX (3600U * 1000U)
#define CONVERSATION_MS_MAX (UINT64_C(30) * 24 * 3600 * 1000) /* as errandd has it for questions */
#define READY_USEC (10 * USEC_PER_SEC) /* a shim listens within milliseconds */
#define PROBE_USEC (20 * USEC_PER_SEC) /* bailey runs /bin/true in two */
#define LAST_WAIT_USEC (5 * USEC_PER_SEC) /* beyond the grace period, when errandd is gone and a shim does not go */
#define IDLE_USEC (30 * USEC_PER_SEC) /* what starts within does not wait for a start of it */
#define AHEAD_USEC (250 * USEC_PER_MSEC) /* after an answer: the session that has it comes first */
#define IDLE_MS_MAX (3600U * 1000U)
#define SLICE_NAME_MAX 128U  /* systemd takes 255 */
#define DESCRIPTION_MAX 256U /* one line of a table */
#define SCOPE_USEC (10 * USEC_PER_SEC) /* a user manager makes one within 12 ms; it may be starting */
#define MANAGER_USEC (2 * USEC_PER_SEC) /* until it says what it is */
#define MANAGER_AGAIN_USEC USEC_PER_SEC /* one that executes itself anew is back within a second */
#define SCOPE_TRIES_MAX 4U   /* while one of an earlier run is going */
