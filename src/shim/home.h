/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* A home that is not there yet is made, with what programs inside need to find the session's way out and cannot be told by a variable:
 * .ssh/config, by which ssh, and what runs it, goes through errand-connect. One that is there is left as it is: it is the session's. Logs what
 * goes wrong; a home that cannot be made is left to bailey, which says why. */
void home_prepare(const char *home);
