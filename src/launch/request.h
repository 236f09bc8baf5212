/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A "launch" request, read strictly into a plan: what is not understood whole is refused whole. */

#include "launch/scope-plan.h"
#include "shared/message.h"
#include "shared/session-id.h"

typedef enum LaunchFd {
        LAUNCH_FD_PROJECT,     /* directory */
        LAUNCH_FD_POLICY,      /* regular file, readable */
        LAUNCH_FD_TRANSCRIPT,  /* regular file, append-only; so are the events */
        LAUNCH_FD_EVENTS,
        LAUNCH_FD_ENVIRONMENT, /* sealed memfd; so are scrub and token */
        LAUNCH_FD_SCRUB,
        LAUNCH_FD_TOKEN,       /* with a broker, and only then */
        LAUNCH_FD_STDIN,       /* may be given without a terminal */
        LAUNCH_FD_STDOUT,
        LAUNCH_FD_STDERR,
        LAUNCH_FD_TERMINAL,    /* may be given with a terminal: a unix stream socket, attached from the first byte on */
        _LAUNCH_FD_MAX,
        _LAUNCH_FD_INVALID = -EINVAL,
} LaunchFd;

/* The name it has in the message, and for the shim. */
const char *launch_fd_to_string(LaunchFd fd);

typedef struct LaunchPlan {
        char *session;
        char **command;
        bool interactive, strict;
        bool proxy_net;           /* only without a broker */
        uint16_t rows, columns;   /* 0: not given */
        char *home, *socket;      /* absolute paths */
        char *broker_socket, *listen; /* NULL: no broker */
        char **accept_gaps;
        uint32_t grace_ms;
        bool conversation;        /* with these three times; only without a terminal and files */
        uint64_t startup_ms, question_ms, abort_ms;
        uint64_t file_max;        /* bytes of one file that the payload writes; 0: not limited */
        ScopePlan *scope;         /* NULL: none is made */
        int fds[_LAUNCH_FD_MAX];  /* -EBADF where there is none */
} LaunchPlan;

/* Takes the message's fds. -EBADMSG with *ret_problem, a sentence (to free). */
int launch_plan_parse(Message *m, LaunchPlan **ret, char **ret_problem);
LaunchPlan *launch_plan_free(LaunchPlan *p);
void launch_plan_close(LaunchPlan *p); /* its fds */
DEFINE_CLEANUP(LaunchPlan *, launch_plan_free);

/* True when every member of o is among v, type, serial, fds and known[], NULL-terminated; else *ret_name is the first that is not (borrowed). */
bool request_members_known(JsonObject *o, const char *const *known, const char **ret_name);
