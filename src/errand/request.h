/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A command line, read and checked for form: what a verb acts on. Strings are argv's own; the lists are request_done()'s. */

#include "basic/macro.h"

typedef struct Verb Verb;

typedef struct Request {
        const Verb *verb;
        bool help, version, print_verbs;
        bool json, full, no_pager, system, user, embedded, no_start, quiet;
        bool follow, all, keep_terminal, no_terminal, attach, remove, no_wait;
        const char *state_dir, *config, *account;
        const char *project, *id, *provider, *model, *network, *protocol, *file;
        const char *signal, *outcome, *since, *limit;
        char **allow, **env;
        char *const *operands; /* ends with NULL; for run and create the command, empty for the configured agent's */
        size_t n_operands;
        char **operand_list; /* owns the array operands, not its strings */
} Request;

void request_done(Request *q);

/* argv as main() got it. -EINVAL after it has logged what is wrong, with what, and the nearest known name; *ret has the verb then, if one was
 * recognized, for the exit code. */
int request_parse(int argc, char *const *argv, Request *ret);
