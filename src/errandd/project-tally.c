/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/project-tally.h"

void project_tally_done(ProjectTally *t) {
        free(t->rows);
        *t = (ProjectTally){};
}

static int add(ProjectTally *t, uid_t uid) {
        struct ProjectTallyRow *longer;

        for (size_t i = 0; i < t->n_rows; i++)
                if (t->rows[i].uid == uid) {
                        t->rows[i].n++;
                        return 0;
                }
        longer = reallocarray(t->rows, t->n_rows + 1, sizeof(*t->rows));
        if (!longer)
                return -ENOMEM;
        t->rows = longer;
        longer[t->n_rows++] = (struct ProjectTallyRow){.uid = uid, .n = 1};
        return 0;
}

static int count_all(ProjectTally *t, int owners, DIR *d) {
        const struct dirent *entry;
        int r = 0;

        for (errno = 0; r >= 0 && (entry = readdir(d)); errno = 0) {
                Fault f = {};
                uid_t uid;

                if (project_name_problem(entry->d_name))
                        continue;
                if (project_owner(owners, entry->d_name, &uid, &f) >= 0)
                        r = add(t, uid);
                fault_done(&f);
        }
        return r < 0 ? r : -errno;
}

static int read_all(ProjectTally *t, int owners, const struct stat *st) {
        ProjectTally fresh = {.changed = st->st_mtim};
        DIR *d = fd_opendir(openat(owners, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

        if (!d)
                return negative_errno();
        int r = count_all(&fresh, owners, d);
        closedir(d);
        if (r < 0) {
                project_tally_done(&fresh);
                return r;
        }
        project_tally_done(t);
        *t = fresh;
        return 0;
}

int project_tally_count(ProjectTally *t, int owners, uid_t uid, size_t *ret) {
        struct stat st;

        int r = fstat(owners, &st) < 0 ? -errno : 0;
        if (r >= 0 && (st.st_mtim.tv_sec != t->changed.tv_sec || st.st_mtim.tv_nsec != t->changed.tv_nsec))
                r = read_all(t, owners, &st);
        if (r < 0)
                return r;
        *ret = 0;
        for (size_t i = 0; i < t->n_rows; i++)
                if (t->rows[i].uid == uid)
                        *ret = t->rows[i].n;
        return 0;
}

int project_tally_add(ProjectTally *t, int owners, uid_t uid) {
        struct stat st;

        if (fstat(owners, &st) < 0)
                return -errno;
        t->changed = st.st_mtim;
        return add(t, uid);
}
