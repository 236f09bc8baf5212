/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Stands in for sessions with a conversation: answers Prompt, Interrupt, Say and Describe of every session ahead of the bus's face, prints each call as
 * a line, and tells whoever subscribed last what it is told on standard input. A record of that ends with RS and has its fields between US:
 *   update ID KIND [NAME TYPE VALUE]…     types s, t, b
 *   exited ID REASON STATUS
 *   standing STATE TURN QUEUED            what Describe says from then on
 *   unsubscribed
 * A prompt that begins with "refuse " is refused. */

#include <systemd/sd-bus.h>

/* standing: as above, with blanks: "running 0 0"; a TURN of -1 is not known. */
int conversation_begin(sd_bus *bus, sd_event *event, const char *standing);
