/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One session's keeper, outside of its sandbox: starts bailey, holds the terminal, writes transcript and events, and goes when all of the
 * session is gone. errandd may come and go meanwhile. */

#include <systemd/sd-event.h>

#include "shim/child.h"
#include "shim/control.h"
#include "shim/conversation.h"
#include "shim/events.h"
#include "shim/group.h"
#include "shim/limits.h"
#include "shim/options.h"
#include "shim/terminal.h"
#include "shim/transcript.h"

typedef enum ShimState {
        SHIM_STARTING, /* bailey is preparing the sandbox */
        SHIM_RUNNING,
        SHIM_EXITED,   /* and the last line of the events is written */
        _SHIM_STATE_MAX,
        _SHIM_STATE_INVALID = -EINVAL,
} ShimState;

const char *shim_state_to_string(ShimState state);

typedef struct Output {
        Shim *shim;
        int fd;
        sd_event_source *io;
        TranscriptStream *stream;
} Output;

struct Shim {
        ShimOptions *options;
        sd_event *event;
        ShimState state;

        SecretList *secrets;
        Transcript *transcript;
        Events *events;
        Control *control;
        Terminal *terminal; /* NULL: not interactive */
        TranscriptStream *terminal_stream;
        bool terminal_ended;
        Conversation *conversation; /* NULL: its agent is not talked to */
        char *failure;              /* of the conversation: why it was stopped */
        Output outputs[2];

        sd_event_source *launcher_io; /* while the session's scope is being made */
        char *refused;                /* why nothing ran: it was not made */
        Group *group;                 /* NULL: none */

        Child child;
        sd_event_source *child_event, *report_io, *console_io, *log_io;
        pid_t pid1; /* of the sandbox, as seen here; 0: not known */
        int pid1_fd;
        sd_event_source *pid1_io;

        char log[LOG_LINE_MAX]; /* bailey's messages, until a line is whole */
        size_t log_size, n_log_lines;
        char *last_line;     /* of bailey, scrubbed */
        bool has_closing;    /* its closing line came: the command ran and ended, and s->exit says how */

        bool stopping, killed; /* SIGTERM was sent; SIGKILL was */
        usec_t kill_at;        /* monotonic */
        sd_event_source *grace, *drain, *linger;

        bool child_ended;
        int child_code, child_status; /* si_code and si_status, see waitid(2) */
        ExitStatus exit;
        bool lost; /* the last line is not on disk */
};

/* For report.c. The sandbox is made and its command about to run; takes pidfd, that of its first process, which may be negative. */
void shim_started(Shim *s, const Started *started, int pidfd);
/* Something ended; when all has, the last line is written. */
void shim_check_end(Shim *s);

/* Runs a session to its end. 0 when its last line is on disk, else a negative errno. */
int shim_run(ShimOptions *options);

/* SIGTERM to the payload, and SIGKILL to all of the sandbox after grace_usec. A second call can only shorten the time. */
int shim_stop(Shim *s, usec_t grace_usec);
/* A line of errandd's in the transcript. */
void shim_note(Shim *s, const char *text);
/* To the payload, through bailey. SIGKILL goes to the sandbox's first process. */
int shim_signal(Shim *s, int signal);
