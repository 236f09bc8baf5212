/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs another program for what only shared libraries know, where a program of ours is linked statically and loads none.
 * Nothing of the caller's environment and descriptors goes along. */

#include <stddef.h>

#include "basic/macro.h"

#define EXIT_NO_PROGRAM 127
#define PROGRAM_INPUT_MAX 65536U /* what a pipe holds */

typedef struct ProgramStreams {
        int input, output, errors;
} ProgramStreams;

/* What a child of fork(2) becomes, as below, with these for its standard streams. It is killed when the thread that forked it ends. */
_noreturn_ void program_execute(int program, char *const *arguments, const ProgramStreams *streams, int capability);

/* `program` is executed by its fd (O_CLOEXEC, at least 3), arguments[0] then being but a name; -EBADF: arguments[0] is its path. `input` is
 * its standard input; what it writes, errors included, is cut at size - 1 bytes and ends with a NUL. `capability` is kept over execve(2),
 * -1: none. Returns its exit status, EXIT_NO_PROGRAM where it cannot be executed, -EPIPE where a signal ended it, or a negative errno. */
int program_run(int program, const char *const *arguments, const char *input, int capability, char *ret_output, size_t size);
