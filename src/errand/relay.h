/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Copies bytes from one descriptor to another on an event loop, with one buffer between: when the reader stops, nothing more is read. */

#include <systemd/sd-event.h>

#include "basic/macro.h"

#define RELAY_BUFFER 16384U

typedef struct Relay Relay;

/* Sees what was read before it is passed on; may shorten it, or replace it by at most RELAY_BUFFER + 1 bytes. Returns the new size. */
typedef size_t (*RelayFilter)(char *data, size_t size, void *userdata);
/* Once, at the end: 0 end of file on `from`, or the negative errno of either side. May free the relay. */
typedef void (*RelayEnd)(Relay *r, int error, void *userdata);

typedef struct RelayOptions {
        int from, to; /* borrowed; one that is non-blocking is waited for */
        RelayFilter filter;
        RelayEnd end;
        void *userdata;
} RelayOptions;

int relay_new(sd_event *event, const RelayOptions *o, Relay **ret);
Relay *relay_free(Relay *r);
DEFINE_CLEANUP(Relay *, relay_free);
