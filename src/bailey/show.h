/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints a resolved policy for people, in a form that is documented (bailey(1)) and stays, and for programs. */

#include "bailey/policy.h"

int show_policy(const Policy *p, FILE *f);
int show_policy_json(const Policy *p, FILE *f); /* one line */
