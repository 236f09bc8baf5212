/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of errand-shim, which errand-launch writes and nobody types. It holds no secret: those come as descriptors. */

#include <sys/types.h>

#include "basic/clock.h"
#include "basic/macro.h"

typedef enum ShimFd {
        SHIM_FD_LAUNCHER,    /* SOCK_SEQPACKET: told once that the session is on its way, or why not; with a scope asked before that */
        SHIM_FD_BAILEY,      /* the program */
        SHIM_FD_PROJECT,     /* directory */
        SHIM_FD_POLICY,
        SHIM_FD_TRANSCRIPT,  /* append-only, as are the events */
        SHIM_FD_EVENTS,
        SHIM_FD_ENVIRONMENT, /* sealed memfd: KEY=VALUE\0 … */
        SHIM_FD_SCRUB,       /* sealed memfd: SECRET\0 … */
        SHIM_FD_TOKEN,       /* sealed memfd: 64 hex digits */
        SHIM_FD_STDIN,       /* these three: the payload's, when it has no terminal; -EBADF: nothing to read, the transcript to write to */
        SHIM_FD_STDOUT,
        SHIM_FD_STDERR,
        SHIM_FD_TERMINAL,    /* a stream socket that is attached from the first byte on */
        _SHIM_FD_MAX,
        _SHIM_FD_INVALID = -EINVAL,
} ShimFd;

/* Strings are argv's own; fds are open, above 2 and closed on exec, -EBADF when not given. */
typedef struct ShimOptions {
        const char *session, *socket, *home;
        bool proxy_net;
        const char *broker_socket, *listen; /* both or none */
        const char *scope; /* the unit that is made around bailey before it runs; NULL: none */
        uint64_t errandd_uid;
        bool interactive, strict;
        bool journal; /* standard error is the journal's: the launcher's environment, which says so, is not passed on */
        uint16_t rows, columns;
        const char *accepted_gaps[32];
        size_t n_accepted_gaps;
        usec_t grace_usec;
        bool conversation; /* the agent's standard input and output are the shim's; these three are times for it then */
        uint64_t startup_ms, question_ms, abort_ms;
        uint64_t file_max; /* RLIMIT_FSIZE of the payload; 0: not limited */
        int fds[_SHIM_FD_MAX];
        char **command;
        uint64_t core_limit; /* soft, as it was before the shim took it from itself: the session's */
        pid_t ahead_pid; /* of a process that was forked for it before, in the scope or about to be; 0: none */
        int ahead_gate;
        pid_t ahead_made; /* the one whose scope the launcher has made; 0: none, or not yet */
        bool help, version;
} ShimOptions;

/* 0, or -EINVAL after a line that says what is wrong. Owns the fds; they are not closed on failure, which is the program's end. */
int shim_options_parse(int argc, char **argv, ShimOptions *ret);
