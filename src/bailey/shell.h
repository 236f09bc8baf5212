/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/options.h"

/* bailey shell: SHELL, or /bin/sh, under the policy of the working directory, with that directory's private home. In a terminal
 * it gets one of its own. Returns bailey's exit code. */
int shell_verb(const Options *o);
