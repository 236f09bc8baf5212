/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Between attach.c, which follows what becomes of a session, and attach-streams.c, which joins its terminal or pipes to ours. */

#include <systemd/sd-event.h>

#include "errand/attach.h"
#include "errand/keys.h"
#include "errand/modes.h"
#include "errand/notices.h"
#include "errand/relay.h"
#include "errand/transcript.h"
#include "shared/bus-object.h"

typedef struct Attachment {
        Connection *connection;
        const char *id;
        char path[BUS_PATH_MAX];
        AttachFlags flags;
        sd_event *event;
        sd_event_source *drain, *slow;
        AttachPipes *pipes;
        int terminal, terminal_input; /* one socket, twice: a descriptor can be waited for once */
        Relay *in, *out, *error;
        Transcript *transcript;
        Keys keys;
        Modes modes;
        char undo[MODES_UNDO_MAX];
        unsigned open;   /* outputs that have not come to their end */
        bool starting, running, exited, cancelled, leaving, shown, told; /* told: what its start waits for */
        bool typing; /* standard input was a terminal at the start: one that hung up is none any more */
        unsigned interrupts; /* that the command was sent */
        int pending; /* a signal that came before the command ran; 0: none */
        int code;
        Notices notices;
} Attachment;

/* The loop ends, with that code; what was said first counts. */
void attachment_leave(Attachment *a, int code);
/* A line for whoever sits there: at once, or behind what a terminal shows. */
int attachment_notice(Attachment *a, const char *text);

/* attach-streams.c */
/* a->terminal is the session's. */
int attachment_show_terminal(Attachment *a);
int attachment_join_pipes(Attachment *a);
void attachment_close_streams(Attachment *a);
