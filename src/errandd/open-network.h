/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What sandbox.egress.mode "open" needs of this host. */

#include "errandd/config.h"

/* Adds bailey's names of what sessions will lack: rules for TCP ports, and pasta, in the places where bailey looks for it. */
int open_network_add_gaps(const ConfigSandbox *s, char ***gaps);
