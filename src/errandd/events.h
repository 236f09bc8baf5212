/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The events file of a session, as its shim appends to it: one JSON object a line. Read on from where it was read before, while it grows. */

#include <systemd/sd-event.h>

#include "basic/clock.h"

#define EVENT_LINE_MAX (64U * 1024U)
#define EVENTS_MAX (4U * 1024U * 1024U) /* bytes of a run: a shim writes two lines, and of bailey's at most 200 of 16 KiB */

typedef enum SessionEventKind {
        SESSION_EVENT_STARTED, /* the command runs */
        SESSION_EVENT_EXITED,  /* the run's last line */
        SESSION_EVENT_OTHER,   /* what this version does not know */
} SessionEventKind;

typedef struct SessionEvent {
        SessionEventKind kind;
        usec_t time;        /* realtime, as the shim says; 0: it does not */
        uint64_t pid;       /* STARTED */
        const char *reason; /* EXITED: "exited", "signal", "killed", "setup"; borrowed */
        uint64_t status;    /* EXITED: as a shell tells it */
        const char *text;   /* EXITED: a sentence, or NULL; borrowed */
} SessionEvent;

typedef void (*SessionEventHandler)(const SessionEvent *e, void *userdata);

/* Reads whole lines from *offset on and moves it past them. A malformed or overlong line is skipped, and *ret_damaged counts it. -ESTALE: the file
 * is shorter than what was read, so its holder tampered with it. -E2BIG: EVENTS_MAX bytes were read at once, and what may follow is not: it may
 * grow as fast as it is read. */
int events_read(int fd, uint64_t *offset, SessionEventHandler handler, void *userdata, unsigned *ret_damaged);

/* Calls `changed` when the file grows. The fd is borrowed. */
int events_watch(sd_event *event, int fd, sd_event_inotify_handler_t changed, void *userdata, sd_event_source **ret);
