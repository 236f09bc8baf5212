/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a path of a policy file means: "~" at its beginning, ${VARIABLE} anywhere, relative to the file's directory, "." and ".."
 * collapsed by text. */

#include "basic/macro.h"

/* ${WORKDIR} stands for the working directory, ${HOME} for what ~ does. */
typedef struct PolicyPlaces {
        const char *home;              /* the person's real one; NULL: ~ is an error */
        const char *working_directory; /* NULL: it has no name */
        bool environment;              /* other variables are the caller's own; else there are none */
} PolicyPlaces;

/* Puts in what ~ and variables stand for. 0; -ENOENT for a variable that is not set, -EBADMSG for anything else that is wrong,
 * both with a sentence in *ret_problem (to free); -ENOMEM. places may be NULL. */
int policy_path_expand(const char *s, const PolicyPlaces *places, char **ret, char **ret_problem);

/* The absolute form of an expanded path. base: the file's directory, NULL when it has none. -EBADMSG as above. */
int policy_path_place(const char *s, const char *base, char **ret, char **ret_problem);
