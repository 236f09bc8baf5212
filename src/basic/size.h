/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Numbers of bytes for people, as configurations write them: "4g". parse_bytes() reads them. */

#include "basic/macro.h"

#define SIZE_TEXT_MAX 32U

/* In the largest unit of 1024 that holds it exactly: "1536k". */
const char *size_exact(uint64_t bytes, char buffer[static SIZE_TEXT_MAX]);
/* With one digit behind the point where it is not whole: "1.5m". Rounded up, so that what is beyond a limit does not read as the limit. */
const char *size_about(uint64_t bytes, char buffer[static SIZE_TEXT_MAX]);
