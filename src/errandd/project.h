/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Projects of system mode: a name is a direct child of projectRoot, and whoever first made a session in it owns it. A path from a caller would have
 * errandd open, with its own rights, what the caller may not reach. */

#include "errandd/manager.h"
#include "shared/project-name.h"

/* The directory whose children they are, with what has to be true of it: an fd, or a negative errno with *f. */
int project_root_open(const char *root, const char *state, Fault *f);

/* The project itself: below the root, reached by no link, on the root's own file system. An fd, or a negative errno with *f; -ENOENT when there is
 * nothing of that name. */
int project_open(int root, const char *name, Fault *f);

/* STATE/.projects, made if need be: who owns which. */
int project_owners_open(int state_dir);
/* 0 with *ret; -ENOENT: nobody yet; another error: with *f, and nobody may use it. */
int project_owner(int owners, const char *name, uid_t *ret, Fault *f);
/* A negative errno as the file system has it: whoever calls says what it is about. */
int project_claim(int owners, const char *name, uid_t owner);
/* Of that owner's, it is nobody's again; of another's, it stays so. */
void project_give_up(int owners, const char *name, uid_t owner);
