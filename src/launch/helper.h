/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Work that may take its time, in a child of this program's own. */

#include "launch/launcher.h"

/* Replies when `work` has ended: "ok" for 0, else the errno that it returned. */
int helper_start(Launcher *l, Ticket ticket, int (*work)(int fd), int fd);
