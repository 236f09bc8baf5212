/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errand-launch, as errandd finds and asks it. A child with one end of a socket pair as fd 3, one for each account that payloads have; or the one that
 * socket activation starts, for the one account that they have there. When it dies, it is there again soon; the sessions that it started go on. */

#include "errandd/account.h"
#include "errandd/channel.h"

typedef struct LaunchClient LaunchClient;

typedef struct LaunchHandler {
        void (*shim_exited)(const char *session, int status, void *userdata);
        void (*scope_ended)(const char *session, void *userdata); /* by somebody else's doing */
        void (*started_again)(LaunchClient *l, void *userdata);   /* after it died */
        void *userdata;
} LaunchHandler;

/* socket: of a launcher that listens, as "launch" in that directory (borrowed); -EBADF: a child. log is borrowed, and gets what a child says and its shims
 * say; -EBADF: errandd's standard error. */
int launch_client_new(sd_event *event, const Identity *identity, int socket, int log, const LaunchHandler *handler, LaunchClient **ret, Fault *f);
LaunchClient *launch_client_free(LaunchClient *l);
DEFINE_CLEANUP(LaunchClient *, launch_client_free);

uid_t launch_client_uid(const LaunchClient *l);
const Identity *launch_client_identity(const LaunchClient *l);

/* What the session's scope is made with. */
typedef struct LaunchScope {
        const char *unit;
        uint64_t memory_max;             /* bytes; no swap beside it */
        uint64_t tasks_max;
        usec_t cpu_quota_per_sec;
} LaunchScope;

/* How its shim is to talk to the command. */
typedef struct LaunchConversation {
        const char *protocol;
        usec_t startup, question, abort;
} LaunchConversation;

typedef struct Launch {
        const char *session;
        char *const *command;
        bool interactive;
        unsigned rows, columns;
        const char *home;
        const char *broker_socket; /* NULL: no broker */
        uint16_t port;             /* with a broker */
        bool strict;
        bool proxy_net;  /* a private network, where bailey's policy lets anything out */
        char *const *accept_gaps;
        usec_t grace;
        uint64_t file_max;         /* bytes */
        const char *shim_socket;
        const LaunchScope *scope;  /* NULL: none */
        const LaunchConversation *conversation; /* NULL: none */
        int project, policy, transcript, events, environment, scrub, token; /* borrowed; token only with a broker */
        int stdio[3];              /* -EBADF: none */
} Launch;

/* reply: "launched" with "pid", and "scope" for one. */
int launch_client_launch(LaunchClient *l, const Launch *launch, ChannelReply reply, void *userdata, Fault *f);
/* Which session will come, whose scope it may make before; NULL: none. Nothing is told of it. */
void launch_client_prepare(LaunchClient *l, const char *session, const LaunchScope *scope);

/* The reply to a launch with that userdata is not called any more. */
void launch_client_forget(LaunchClient *l, const void *userdata);
/* A shim that an earlier launcher started, found by its socket: its end will be told. */
int launch_client_adopt(LaunchClient *l, const char *session, const char *socket);
/* Has it stop what it may be starting for that session; that it starts nothing is fine. */
int launch_client_stop(LaunchClient *l, const char *session);
/* Sends the signal to that session's shim. */
int launch_client_kill(LaunchClient *l, const char *session, int signal);
/* Removes what the payload's account left in that directory; the fd is borrowed. */
int launch_client_collect(LaunchClient *l, const char *session, int state, ChannelReply reply, ChannelDrop drop, void *userdata);
/* What its processes use; reply: "usage" with "cpu", microseconds, "memory", bytes, and "pids". */
int launch_client_usage(LaunchClient *l, const char *session, ChannelReply reply, void *userdata);
/* Measures both directories; reply: "disk" with "state" and "project", bytes, and "stateWhole" and "projectWhole"; "system", what the project's
 * file system had in use before that, and "grown", by how much it has more now. The fds are borrowed. */
#define DISK_BYTES_MAX UINT64_C(999999999999999998)
int launch_client_disk(LaunchClient *l, int state, int project, ChannelReply reply, ChannelDrop drop, void *userdata);
/* reply: "probe" with "gaps" and "landlock"; from one that listens with "scopes" and "controllers" too. */
int launch_client_probe(LaunchClient *l, ChannelReply reply, void *userdata);
/* Makes the project `name` in that directory (borrowed), the payload's, and open to that uid. */
int launch_client_make_project(LaunchClient *l, int root, const char *name, uid_t owner, ChannelReply reply, ChannelDrop drop, void *userdata);
