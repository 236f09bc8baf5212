/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a thread is told of a host that was refused, and how to let it through. */

#include "basic/macro.h"

/* A command is suggested for a single exact host only: host is a normalized one, or what somebody asked for instead, which is then named escaped and
 * without one. To free; NULL when out of memory. */
char *egress_notice(const char *host);
