/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Takes errandd's requests over one SOCK_SEQPACKET connection and starts shims. Keeps nothing that matters: shims are found by their sockets,
 * and neither they nor brokers notice when a launcher goes.
 *
 * Given a connection, it is errandd's own: its end is the end of errandd, and then shims are asked to stop. Given a socket that listens, it
 * serves the newest errandd that connects, sessions go on without one, and it leaves when there is nothing left to do: whoever holds the
 * socket starts it again. */

#include <systemd/sd-event.h>

#include "basic/clock.h"
#include "shared/message.h"

typedef struct Launcher Launcher;
typedef struct Session Session;
typedef struct ShimAhead ShimAhead;
typedef struct UserManager UserManager;

struct Launcher {
        sd_event *event;
        int listener;        /* -EBADF: errandd's own, see above */
        int fd;              /* errandd; -EBADF: none now */
        uint64_t connection; /* which one it is, from 1 */
        uid_t errandd_uid;
        sd_event_source *listener_io, *io, *idle;
        usec_t idle_usec;
        UserManager *manager; /* of this account; asked only when there is a scope to make */
        int shim, bailey; /* programs */
        Session *sessions;
        size_t n_sessions, n_helpers;
        bool keeps_ahead;
        ShimAhead *ahead; /* NULL: none now */
        struct ScopePlan *ahead_plan; /* of the session that errandd says will come; NULL: it says of none */
        sd_event_source *ahead_timer;
        bool ending; /* the errandd whose own it is has gone */
};

/* Which request a late reply belongs to. */
typedef struct Ticket {
        uint64_t connection;
        bool has_serial;
        uint64_t serial;
} Ticket;

typedef struct LauncherOptions {
        int fd;
        bool listening;
        uid_t errandd_uid; /* who may connect to a listening one; a connection's is its peer's */
        usec_t idle_usec;  /* that a listening one stays with nothing to do */
        bool keeps_ahead;  /* a listening one: a shim is started before there is a session for it */
        int shim, bailey;
} LauncherOptions;

/* Runs until there is nothing left to do, see above. The fds are taken. 0 or a negative errno. */
int launcher_run(const LauncherOptions *options);

void launcher_open_reply(JsonWriter *w, const char *type, Ticket ticket);
void launcher_send(Launcher *l, JsonWriter *w); /* an event; without errandd it is lost, and errandd asks when it comes back */
/* Not to another errandd than the one that asked. */
void launcher_send_reply(Launcher *l, Ticket ticket, JsonWriter *w);
void launcher_reply(Launcher *l, Ticket ticket, int error, const char *text); /* "ok", or "error" with text or the errno's own */
