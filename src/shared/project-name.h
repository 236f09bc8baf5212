/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A project's name as errandd takes it of a caller, and the launcher of errandd: a word that stands as it is in paths, and that no program takes for an option. */

#include "basic/macro.h"

#define PROJECT_NAME_MAX 63U

/* Letters, digits, '.', '_' and '-', the first one a letter, a digit or '_'. NULL: it is fine; else what is wrong, as the end of a sentence. */
const char *project_name_problem(const char *name);
