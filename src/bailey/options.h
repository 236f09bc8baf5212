/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of bailey, read strictly; bailey(1) describes it. */

#include "bailey/gap.h"
#include "basic/macro.h"

typedef enum Verb {
        VERB_RUN,
        VERB_SHOW,
        VERB_SHELL,
        VERB_TRUST,
        VERB_PROFILE_LIST,
        VERB_PROFILE_SHOW,
        VERB_PROFILE_GENERATE,
        VERB_AUDIT,
        VERB_DOCTOR,
        VERB_HELP,
        VERB_VERSION,
        VERB_PRINT_VERBS, /* the table below for tests of what tells of it a second time */
        _VERB_MAX,
        _VERB_INVALID = -EINVAL,
} Verb;

/* Strings are argv's own. fds are -EBADF when not given, else open, above 2, and closed on exec. */
typedef struct Options {
        Verb verb;
        const char *config, *profile, *user, *home;
        bool only_config, strict, quiet, json, plan;
        const char *save_trace; /* of audit */
        bool unconfined;
        bool explain, no_isolate;
        const char *trace, *target; /* of profile generate */
        bool include_high_risk, accept_truncated;
        bool yes, list, revoke; /* of trust */
        GapSet accepted_gaps;
        const char *broker_socket;
        int broker_token_fd;
        uint32_t listen_address; /* network byte order */
        uint16_t listen_port;    /* 0: not given */
        bool proxy_net;
        uint32_t proxy_address;  /* of --egress-proxy, network byte order */
        uint16_t proxy_port;     /* 0: not given */
        int env_fd, report_fd, console_socket, stderr_fd;
        uint16_t rows, columns;  /* of the terminal; 0: not given */
        char *const *argv;       /* what comes after the options, NULL-terminated: TARGET ARGS…, a shell's arguments, FILE or NAME */
} Options;

/* 0, or -EINVAL after a line that says what is wrong. */
int options_parse(int argc, char *const *argv, Options *ret);

void options_print_help(FILE *f);
/* A list of {"verb", "options": [{"name", "value"}]}. */
int options_print_verbs(FILE *f);
