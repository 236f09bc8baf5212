/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How many names of projects each account has, where projects are names. Counted once, and again when somebody else has changed the directory of their
 * owners: each is a file of its own, and a call that makes a project must not wait for all of them to be read. */

#include <sys/stat.h>

#include "errandd/project.h"

typedef struct ProjectTally {
        struct timespec changed; /* when the directory was, as it is counted */
        struct ProjectTallyRow {
                uid_t uid;
                size_t n;
        } *rows;
        size_t n_rows;
} ProjectTally;

void project_tally_done(ProjectTally *t);

/* owners: as of project_owners_open(). What cannot be read as whose it is, is nobody's. */
int project_tally_count(ProjectTally *t, int owners, uid_t uid, size_t *ret);

/* One more is that account's, by project_claim() just now. */
int project_tally_add(ProjectTally *t, int owners, uid_t uid);
