/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the account's user manager can limit its units with. */

#include "launch/user-manager.h"

typedef struct ManagerProbe ManagerProbe;

/* problem: NULL, or a sentence why no scope can be made. controllers: strv, NULL for none. Borrowed. The probe may be freed in it. */
typedef void (*ManagerProbed)(const char *problem, char *const *controllers, void *userdata);

/* `probed` is called once, later, within MANAGER_USEC; freeing the probe cancels it. Negative with *ret_problem (to free; may be NULL): it
 * is not reached. */
int manager_probe_new(UserManager *m, ManagerProbed probed, void *userdata, ManagerProbe **ret, char **ret_problem);
ManagerProbe *manager_probe_free(ManagerProbe *p);
DEFINE_CLEANUP(ManagerProbe *, manager_probe_free);
