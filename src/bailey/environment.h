/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The environment inside is built, never inherited: a base, then each layer's [env], then what a supervisor hands over. */

#include "bailey/policy.h"

/* Fills p->variables. p->home, p->account and p->working_directory are settled. shell: the one that is started, NULL: none is. */
int environment_settle(Policy *p, Layer *const *layers, size_t n_layers, bool brokered, const char *shell, char *const *extra,
                       Findings *findings);

/* Reads KEY=VALUE\0 records from a sealed memfd (--env-fd): one that can still change, or is malformed, is an error in *findings.
 * The values may be secrets: they appear in no message, and environment_free() wipes them. */
int environment_read_fd(int fd, Findings *findings, char ***ret);
char **environment_free(char **list);
