/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ends what an earlier errandd left running and no session of this one stands for: shims that answer, and units of brokers. To be called by whoever
 * owns the name on the bus, since another errandd may have a state of its own and the same runtime directory; embedded it does nothing. */

#include "errandd/manager.h"

void orphans_sweep(Manager *m);
