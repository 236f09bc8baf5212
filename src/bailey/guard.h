/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What no policy can grant, and what is taken away from whatever it grants. */

#include "bailey/policy.h"

/* Checks p's rules against the fixed ones: bailey's own trees, sockets of the system's daemons, bailey's state, links that a
 * session could have planted, things that are not there. Errors and warnings name file, line and path. */
int guard_check(const Policy *p, Layer *const *layers, Findings *findings);

/* Warns when the name by which the policy file was given leads over a link that a session could replace: the file itself is never
 * writable, but the next run would read another. config: as on the command line. */
int guard_check_config(const Policy *p, const char *config, Findings *findings);

/* Real paths that exist within what p grants and are covered all the same: daemons' sockets, other programs' homes, and of
 * password hashes and host keys those that the account could read. */
int guard_covers(const Policy *p, char ***ret);
