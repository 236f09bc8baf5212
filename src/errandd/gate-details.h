/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the question to a user tells of a call beside its session. A caller writes these texts and an administrator reads them in a dialog, so they are
 * cut, and whatever could be markup, a variable of the message or a line break is a question mark. A host and
 * a duration are told as they are kept, so that a rule need not know what else they may be written as, and a host whole: whose it is its end says. */

#include <systemd/sd-bus.h>

#include "errandd/action.h"
#include "errandd/say.h"
#include "errandd/session.h"

#define GATE_DETAIL_MAX 255U /* HOST_TEXT_MAX */

typedef struct GateDetails {
        char host[GATE_DETAIL_MAX + 1], duration[GATE_DETAIL_MAX + 1], project[GATE_DETAIL_MAX + 1]; /* "" for none */
        const char *whole_project; /* of CreateSession, as it came; borrowed from the message; NULL: none */
} GateDetails;

/* said: what it says in a session's thread; of no other call is it looked at. session and grant: of the object, if it has one. A message of another form than it should have gives nothing: its handler refuses it. Leaves it at its
 * beginning. */
void gate_details_read(sd_bus_message *m, const Say *said, const Action *action, const Session *session, uint64_t grant, GateDetails *ret);
