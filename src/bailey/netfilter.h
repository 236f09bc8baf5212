/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/failure.h"
#include "bailey/network.h"

/* The rules as text, with or without resets for refused TCP. -ENOMEM. */
int netfilter_rules(const Network *n, bool reject, char **ret);

/* Installs the network's rules in the network namespace that this process is in and made, by bailey-netfilter (netfilter-program.c).
 * Whole or not at all. */
int netfilter_install(const Network *n, Failure *f);
