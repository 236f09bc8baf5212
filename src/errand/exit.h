/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What errand's own exit codes mean; errand(1) lists them. run and attach give the command's code, so that what they say of themselves
 * lies where commands seldom go. */

typedef enum ExitCode {
        EXIT_OK = 0,
        EXIT_FAILED = 1,
        EXIT_CONFIGURATION = 2, /* config check: the file is refused; errandd says so with the same code */
        EXIT_NOT_THERE = 3,
        EXIT_NOT_PERMITTED = 4,
        EXIT_NO_DAEMON = 5,
        /* run and attach */
        EXIT_ATTACH_NOT_PERMITTED = 121,
        EXIT_DETACHED = 122, /* the session goes on */
        EXIT_LOST = 123,     /* nobody can say how it ended */
        EXIT_NOT_SET_UP = 125, /* as env(1): nothing ran */
        EXIT_NOT_EXECUTABLE = 126,
        EXIT_NOT_FOUND = 127,
} ExitCode;
