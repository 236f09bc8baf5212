/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Takes errandd's requests over one SOCK_SEQPACKET socket and starts shims. Keeps nothing that matters: shims are found by their sockets, and
 * neither they nor brokers notice when a launcher goes. The end of the socket is the end of errandd: then shims are asked to stop. */

#include <systemd/sd-event.h>

#include "basic/clock.h"
#include "shared/message.h"

typedef struct Launcher Launcher;
typedef struct Session Session;

struct Launcher {
        sd_event *event;
        int fd; /* errandd */
        uid_t errandd_uid;
        sd_event_source *io;
        int shim, bailey; /* programs */
        Session *sessions;
        size_t n_sessions, n_helpers;
        bool ending; /* errandd is gone */
};

/* Which request a late reply belongs to. */
typedef struct Ticket {
        bool has_serial;
        uint64_t serial;
} Ticket;

/* Runs until errandd is gone and every shim with it. The fds are taken. 0 or a negative errno. */
int launcher_run(int fd, int shim, int bailey);

void launcher_open_reply(JsonWriter *w, const char *type, Ticket ticket);
void launcher_send(Launcher *l, JsonWriter *w);
void launcher_reply(Launcher *l, Ticket ticket, int error, const char *text); /* "ok", or "error" with text or the errno's own */
