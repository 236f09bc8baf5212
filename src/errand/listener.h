/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Listens to what errandd tells by signals, over restarts of it, until it is told to leave. */

#include "basic/clock.h"
#include "errand/connect.h"

typedef enum ListenerEvent {
        LISTENER_GONE,    /* errandd is; sessions go on, and it is waited for */
        LISTENER_ENDED,   /* it was one's own: its sessions ended with it; another is waited for */
        LISTENER_BACK,
        LISTENER_MISSED,  /* signals came faster than they were read */
} ListenerEvent;

typedef struct ListenerCalls {
        /* Nothing is missed from here on: asks for what there is. again: something may have been missed before. An ExitCode; another than EXIT_OK
         * ends it, but for EXIT_NO_DAEMON, which is a restart. */
        int (*ready)(bool again, void *userdata);
        void (*signal)(sd_bus_message *m, const char *interface, const char *member, void *userdata); /* of errandd */
        void (*event)(ListenerEvent event, void *userdata);
        void (*woken)(void *userdata);       /* may be NULL */
        void (*interrupted)(void *userdata); /* may be NULL */
} ListenerCalls;

typedef struct Listener {
        const Request *request;
        const ListenerCalls *calls;
        void *userdata;
        Connection *connection; /* another one after LISTENER_ENDED */
        usec_t wake;            /* when to call `woken`, monotonic; 0: not at all */
        int interrupts;         /* a signalfd(2), the caller's; -EBADF: none */
        bool disconnected, leaving;
        int code;
} Listener;

/* With request, calls, userdata and interrupts set, opens a connection and stays until listener_leave(), or what cannot be helped. An ExitCode. */
int listener_run(Listener *l, ConnectFlags flags);
void listener_leave(Listener *l, int code);
