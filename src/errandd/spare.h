/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The broker of a session that nobody has asked for yet: the start of a broker's units takes most of the start of a session. It runs under an id
 * that was minted for it, knows nothing, neither key nor listener, and waits for its set-up. There is one at most, where brokers are units. */

#include "errandd/broker-client.h"
#include "errandd/manager.h"

typedef struct Spare Spare;

/* Has one started, unless there is one, or sessions have no brokers here. That it cannot be had is no failure: it is tried again, ever less often. */
void spare_begin(Manager *m);
/* The id of a session that has its broker already, in *ret: given once. False: there is none. */
bool spare_take_id(Manager *m, char ret[static SESSION_ID_MAX + 1]);
/* That broker, waiting for its set-up, for the handler's owner now. NULL: that session has none, or none any more. */
BrokerClient *spare_take_broker(Manager *m, const char *id, const BrokerHandler *handler);
/* It is not wanted any more, as it is; with an id, if it is that session's. */
void spare_drop(Manager *m, const char *id);
/* After the configuration was read again: another one, or none. */
void spare_renew(Manager *m);
/* From memory alone: it goes on, and the next errandd stops it. */
Spare *spare_free(Spare *s);
