/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs: options → account → policy → plan → enter_run() → closing lines. Each returns bailey's exit code. */

#include "bailey/options.h"

#define EXIT_NOT_RUN 125       /* could not be set up, misused, or refused: nothing ran */
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

int run_verb(const Options *o);
int show_verb(const Options *o);
