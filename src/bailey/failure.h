/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What stopped a run, as data: the process inside does not log, it sends this to the supervisor, which prints one line. */

#include "basic/macro.h"

typedef enum Stage {
        STAGE_CALLER,
        STAGE_PROCESS,
        STAGE_NAMESPACES,
        STAGE_IDS,
        STAGE_LOOPBACK,
        STAGE_HOSTNAME,
        STAGE_NESTING,
        STAGE_ROOT,
        STAGE_STEP,
        STAGE_PIVOT,
        STAGE_CONSOLE,
        STAGE_LISTENER,
        STAGE_HANDOVER,
        STAGE_WORKING_DIRECTORY,
        STAGE_REPORT,
        STAGE_LANDLOCK,
        STAGE_CAPABILITIES,
        STAGE_SECCOMP,
        STAGE_DESCRIPTORS,
        STAGE_GAP,
        STAGE_EXECUTE,
        _STAGE_MAX,
        _STAGE_INVALID = -EINVAL,
} Stage;

typedef struct Failure {
        Stage stage;
        int error;      /* positive errno, 0 where the text says it all */
        char text[512]; /* with what; cut when longer, empty when the stage says it all */
} Failure;

const char *stage_describe(Stage s); /* "bringing up loopback in the new network namespace" */

/* The likely cause and what to do, for the errors that people meet; NULL where the error speaks for itself. */
const char *failure_hint(const Failure *f);

/* Fills f and returns -|error| (-EIO for 0). */
int failure_set(Failure *f, Stage stage, int error, const char *format, ...) _printf_(4, 5);

/* The one line: the step, with what, the likely cause and the remedy, and that the command was not run. Returns as above. */
int failure_log(const Failure *f);

/* True where this very process is held by a sandbox that forbids further user namespaces. */
bool nesting_forbidden(void);
