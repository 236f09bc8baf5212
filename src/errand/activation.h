/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Has a message bus start errandd, and sees when that fails. The bus would tell only when its time for it is over, 25 seconds later: the service
 * manager knows at once, and why. */

#include "errand/message-bus.h"

/* Until errandd has its name. -EREMOTEIO: it does not come up, *ret_problem (to free) says why, in lines. Says what it waits for when that takes long. */
int activation_start(sd_bus *bus, MessageBusKind kind, char **ret_problem);
