/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of bailey, read strictly; bailey(1) describes it. */

#include "bailey/gap.h"
#include "basic/macro.h"

typedef enum Verb {
        VERB_RUN,
        VERB_SHOW,
        VERB_HELP,
        VERB_VERSION,
        _VERB_MAX,
        _VERB_INVALID = -EINVAL,
} Verb;

/* Strings are argv's own. fds are -EBADF when not given, else open, above 2, and closed on exec. */
typedef struct Options {
        Verb verb;
        const char *config, *user, *home;
        bool strict, quiet, json, plan;
        GapSet accepted_gaps;
        const char *broker_socket;
        int broker_token_fd;
        uint32_t listen_address; /* network byte order */
        uint16_t listen_port;    /* 0: not given */
        int env_fd, report_fd, console_socket, stderr_fd;
        uint16_t rows, columns;  /* of the terminal; 0: not given */
        char *const *argv;       /* TARGET ARGS…, NULL-terminated */
} Options;

/* 0, or -EINVAL after a line that says what is wrong. */
int options_parse(int argc, char *const *argv, Options *ret);

void options_print_help(FILE *f);
