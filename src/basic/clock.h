/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* All times are microseconds, as on the bus and in systemd. */
typedef uint64_t usec_t;

#define USEC_INFINITY UINT64_MAX
#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC UINT64_C(1000000)
#define USEC_PER_MINUTE (60 * USEC_PER_SEC)

usec_t now_monotonic(void);
usec_t now_realtime(void);
