/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one backend of embedded and user mode. */

#include "launch/launcher.h"

/* Really runs /bin/true in a sandbox and replies with what bailey could not enforce, or with why it did not run. */
int backend_bailey_probe(Launcher *l, Ticket ticket);
