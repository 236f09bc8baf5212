/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From a host to a connected socket: one lookup on this host (5 s), each address judged at the moment of connecting, refused ones
 * skipped, the rest dialled, each a little after the one before or as soon as that failed (10 s over all). The judged address is
 * the one that is dialled. */

#include <systemd/sd-event.h>

#include "broker/hosts.h"
#include "shared/addresses.h"

typedef enum DialResult {
        DIAL_CONNECTED,
        DIAL_NOT_RESOLVED,    /* 502 the name did not resolve */
        DIAL_RESOLVE_TIMEOUT, /* 504 the name did not resolve in time */
        DIAL_NOT_PUBLIC,      /* 403 not a public host */
        DIAL_UNREACHABLE,     /* 502 upstream unreachable */
        _DIAL_RESULT_MAX,
} DialResult;

typedef struct Broker Broker;
typedef struct Dial Dial;

/* Called once from the event loop, never from dial_start() itself. On DIAL_CONNECTED fd is a connected, non-blocking, CLOEXEC
 * socket, now the callee's. detail is a phrase for the log: the resolver's or connect's reason, or what the address was; it may be
 * "". The Dial is gone when the callback returns. */
typedef void (*DialHandler)(void *userdata, DialResult result, int fd, const Address *address, const char *detail);

int dial_start(Broker *b, const Host *host, uint16_t port, DialHandler handler, void *userdata, Dial **ret);

/* Ends a dial without a callback; → NULL. */
Dial *dial_cancel(Dial *d);
DEFINE_CLEANUP(Dial *, dial_cancel);
