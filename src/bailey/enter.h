/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Carries out a plan: see the theory of operation at the top of enter.c. */

#include <netinet/in.h>

#include "bailey/gap.h"
#include "bailey/observer.h"
#include "bailey/plan.h"

/* Everything of a run that is not policy. fds are borrowed, -EBADF where there is none. */
typedef struct RunOptions {
        bool no_isolate;     /* no namespaces but the network's, where it has one: Landlock and seccomp on the host's paths */
        bool strict;         /* any gap not in accepted_gaps is a refusal */
        GapSet accepted_gaps;
        GapSet gaps;         /* found before: told with the others */
        int broker_socket;   /* connected AF_UNIX SOCK_SEQPACKET, before any namespace is entered */
        int broker_token;    /* fd to read the hand-over token from: 64 hex digits, an end of file or a newline after it */
        struct in_addr listen_address; /* 127.0.0.0/8, network byte order */
        uint16_t listen_port;          /* 1…65535 */
        int report;          /* gets one JSON line before exec; a unix socket also gets the fds it names */
        int console_socket;  /* gets the master of the terminal opened inside */
        uint16_t rows, columns; /* of that terminal at first; 0: the kernel's default, which is none */
        int error_output;    /* the command's standard error; without it the command has that of the caller */
        Observer *observer;  /* NULL: nobody looks */
} RunOptions;

/* What became of a run. */
typedef struct RunResult {
        int status;            /* exit code for bailey: the command's own, or 128 + signal */
        int signal;            /* that ended the command; 0: it exited */
        bool killed;           /* the sandbox's first process was, and everything in it: status is of that signal */
        bool started;          /* false: execve() failed, status is 126 or 127, and the error has been printed */
        GapSet gaps;           /* not enforced in this run */
        int landlock_abi;      /* 0 = none */
        bool isolated;         /* namespaces and new root */
        bool own_network;      /* a network namespace of its own */
        bool network_ended;    /* pasta went away before the command did */
        bool limited;          /* every limit that the plan has is held, and there is one */
        uint64_t oom_kills;    /* processes that the kernel ended at the limit of memory */
        unsigned survivors;    /* processes that outlived the command and were killed */
} RunResult;

/* Runs the plan to its end. ENTER_NO_PROXY after a warning that says why, when the plan is for NETWORK_PROXY and that cannot be had,
 * strict or not: nothing was run, *ret is untouched, and another plan may be tried. 0 with *ret filled when the command ran, or was all that could not be; else a negative errno after
 * one line that says which step failed, with what, and what to do. Gaps are warned of before the command starts; survivors are
 * the caller's to tell. Signals are handled by this call as long as it runs. -EPERM for root. */
#define ENTER_NO_PROXY 1
int enter_run(const Plan *plan, const RunOptions *options, RunResult *ret);

/* What RunOptions.no_isolate costs this plan. */
GapSet enter_isolation_gaps(const Plan *plan);
