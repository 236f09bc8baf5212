/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What errandd does in every mode: begin in the same order, say what went wrong in the same way, end with the same codes. */

#include "errandd/bus.h"
#include "errandd/paths.h"

/* Exit codes, as --help says them. Only 1 is worth another try. */
enum {
        EXIT_STOPPED = 0,
        EXIT_FAILED = 1,
        EXIT_CONFIGURATION = 2,
        EXIT_NOT_ENFORCEABLE = 3,
        EXIT_SERVED_ALREADY = 4,
};

typedef struct Daemon {
        sd_event *event;
        Paths *paths;
        Config *config; /* until the manager has it */
        Manager *manager;
        Bus *bus;
} Daemon;

/* For d->paths, which is set: the process (umask, signals, no core), the configuration, the directories, the event loop. */
int daemon_open(Daemon *d, Fault *f);
/* The manager; units as manager_new() has them. ERROR_NOT_ENFORCEABLE, with the report in the log: something is missing that the configuration insists on. */
int daemon_manage(Daemon *d, Units *units, Fault *f);
void daemon_done(Daemon *d);

/* The start-up report, a line of the log each. */
void daemon_log_report(const Daemon *d);
/* Each line as one of the log's, so that three mistakes are three messages. */
void daemon_log_fault(const Fault *f);
/* Logs each line of the fault, ends it, and returns the exit code. */
int daemon_fail(Fault *f);
