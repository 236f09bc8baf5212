/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Time spans as people write them for systemd: "90s", "10m", "1h 30m", "2d". Stricter than systemd.time(7): each number has a
 * unit, each unit comes once, larger before smaller, and there are no fractions and no months or years, whose length varies. */

#include "basic/clock.h"

#define USEC_PER_HOUR (60 * USEC_PER_MINUTE)
#define USEC_PER_DAY (24 * USEC_PER_HOUR)
#define USEC_PER_WEEK (7 * USEC_PER_DAY)

/* Units: us usec · ms msec · s sec second seconds · m min minute minutes · h hr hour hours · d day days · w week weeks. One space
 * may stand between the parts and between a number and its unit. -EINVAL for another form, -ERANGE above max (zero is fine). */
int timespan_parse(const char *s, usec_t max, usec_t *ret);

/* The shortest exact form that timespan_parse() reads: "1h 30m"; "0s" for zero, "infinity" for USEC_INFINITY (which it does not read). */
#define TIMESPAN_TEXT_MAX 64U
const char *timespan_format(usec_t span, char buffer[static TIMESPAN_TEXT_MAX]);
