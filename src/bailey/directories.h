/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where bailey keeps what is its own, and what the person's home is: by the account and, when it is the caller's, by HOME and
 * XDG_*. All absolute and collapsed, none looked at. */

#include "bailey/account.h"

/* Part of *a or of the environment. */
const char *directory_home(const Account *a);

int directory_state(const Account *a, char **ret);  /* $XDG_DATA_HOME/bailey: private homes */
int directory_config(const Account *a, char **ret); /* $XDG_CONFIG_HOME/bailey: config.toml, profiles, what is trusted */
