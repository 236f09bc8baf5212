/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* This account's own service manager (user@UID.service; an account without a login needs linger), over its private socket: neither a bus
 * daemon nor polkit stands in between. Connected when first asked, and again after it went. Nothing here blocks. */

#include <systemd/sd-bus.h>

#include "basic/clock.h"

#define MANAGER_DESTINATION "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"

typedef struct UserManager UserManager;

/* Somebody has asked the manager to stop a unit that is named as a session's scope. */
typedef void (*UserManagerStopping)(const char *unit, void *userdata);

int user_manager_new(sd_event *event, UserManagerStopping stopping, void *userdata, UserManager **ret);
UserManager *user_manager_free(UserManager *m);
DEFINE_CLEANUP(UserManager *, user_manager_free);

sd_event *user_manager_event(UserManager *m);

/* The connection (borrowed), made where there is none. Negative with *ret_problem, a sentence (to free; may be NULL; ret_problem may be). */
int user_manager_connect(UserManager *m, sd_bus **ret, char **ret_problem);

/* Whether it takes PIDFDs (systemd 255); false until it has said so. */
bool user_manager_takes_pidfds(const UserManager *m);

/* Asks it to stop a unit and does not wait; a unit that is not there is no error. */
void user_manager_stop_unit(UserManager *m, const char *unit);
