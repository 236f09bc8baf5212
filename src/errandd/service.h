/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errandd as a service: on the system bus for everybody, or on the session bus for its own account. Its end ends no session: the next one finds
 * them. */

#include "errandd/config.h"

typedef struct ServiceOptions {
        ConfigMode mode;    /* CONFIG_SYSTEM or CONFIG_USER */
        const char *config; /* NULL: the usual */
        bool polkit;        /* it is asked who may; else the account of errandd and root may */
} ServiceOptions;

/* Until SIGTERM or SIGINT, or until its bus is gone. SIGHUP reads the configuration again. Tells the service manager when it is ready. Returns an exit
 * code (daemon.h). */
int service_run(const ServiceOptions *options);

/* Reads the configuration as that errandd would, and logs what is wrong with it: EXIT_STOPPED when it would be taken, else the code that errandd would end with. */
int service_check(const ServiceOptions *options);
