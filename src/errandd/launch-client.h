/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errand-launch, as errandd starts it (a child with one end of a socket pair as fd 3) and asks it. One for each account that payloads have. When it dies
 * it is started again; the sessions that it started go on. */

#include "errandd/account.h"
#include "errandd/channel.h"

typedef struct LaunchClient LaunchClient;

typedef struct LaunchHandler {
        void (*shim_exited)(const char *session, int status, void *userdata);
        void (*started_again)(LaunchClient *l, void *userdata); /* after it died */
        void *userdata;
} LaunchHandler;

/* log is borrowed, and gets what it says and its shims say; -EBADF: errandd's standard error. */
int launch_client_new(sd_event *event, const Identity *identity, int log, const LaunchHandler *handler, LaunchClient **ret, Fault *f);
LaunchClient *launch_client_free(LaunchClient *l);
DEFINE_CLEANUP(LaunchClient *, launch_client_free);

uid_t launch_client_uid(const LaunchClient *l);

typedef struct Launch {
        const char *session;
        char *const *command;
        bool interactive;
        unsigned rows, columns;
        const char *home;
        const char *broker_socket; /* NULL: no broker */
        uint16_t port;             /* with a broker */
        bool strict;
        char *const *accept_gaps;
        usec_t grace;
        uint64_t file_max;         /* bytes */
        const char *shim_socket;
        int project, policy, transcript, events, environment, scrub, token; /* borrowed; token only with a broker */
        int stdio[3];              /* -EBADF: none */
} Launch;

/* reply: "launched" with "pid". */
int launch_client_launch(LaunchClient *l, const Launch *launch, ChannelReply reply, void *userdata, Fault *f);
/* A shim that an earlier launcher started, found by its socket: its end will be told. */
int launch_client_adopt(LaunchClient *l, const char *session, const char *socket);
/* Removes what the payload's account left in that directory; the fd is borrowed. */
int launch_client_collect(LaunchClient *l, const char *session, int state, ChannelReply reply, void *userdata);
/* reply: "probe" with "gaps" and "landlock". */
int launch_client_probe(LaunchClient *l, ChannelReply reply, void *userdata);
