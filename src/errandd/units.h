/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts and stops units of the service manager that answers on a bus: PID 1 on the system bus, the user's own on the session bus. Nothing waits. */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "basic/macro.h"

typedef struct Units Units;
typedef struct UnitJob UnitJob;

/* problem: NULL, or a sentence that names the unit and what systemd said. Called once, from the event loop. */
typedef void (*UnitDone)(const char *problem, void *userdata);

/* Both the bus, which has to be attached to that event loop, and the loop get a reference. */
int units_new(sd_bus *bus, sd_event *event, Units **ret);
Units *units_free(Units *u); /* after every job was answered or forgotten */
DEFINE_CLEANUP(Units *, units_free);

/* Done when the job has ended, or after UNITS_JOB_USEC. A unit that is not there is stopped already. A negative errno: done will not be called. */
#define UNITS_JOB_USEC (60 * UINT64_C(1000000)) /* a broker gets ready in 0.1 s; a stop kills after two */
int units_start(Units *u, const char *name, UnitDone done, void *userdata, UnitJob **ret);
int units_stop(Units *u, const char *name, UnitDone done, void *userdata, UnitJob **ret);

/* done will not be called any more; the job goes on. Accepts NULL. */
UnitJob *unit_job_forget(UnitJob *j);
