/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "launch/tree.h"

/* A tree can be deeper than there are descriptors or stack. So it is never walked down: the directories of a directory are moved up to the
 * top, one after the other, where they are emptied in turn. */
typedef struct Sweep {
        int top;
        dev_t device;
        unsigned next_name;
} Sweep;

static int next_name(Sweep *s, char name[static 32]) {
        struct stat st;

        do
                (void) snprintf(name, 32, ".errand-collect-%u", s->next_name++);
        while (fstatat(s->top, name, &st, AT_SYMLINK_NOFOLLOW) >= 0);
        return errno == ENOENT ? 0 : -errno;
}

/* Empties `name` in the top but for its directories, which go to the top, and removes it. */
static int sweep_directory(Sweep *s, const char *name) {
        struct stat st;
        int r = 0;

        /* What a session made unreadable is its own account's, that is ours. */
        int fd = openat(s->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == EACCES && fchmodat(s->top, name, 0700, 0) >= 0)
                fd = openat(s->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || st.st_dev != s->device) {
                safe_close(fd);
                return -EXDEV;
        }
        if ((st.st_mode & 0700) != 0700)
                (void) fchmod(fd, 0700);
        DIR *d = fd_opendir(fd);
        if (!d)
                return negative_errno();
        for (const struct dirent *e; r >= 0 && (e = readdir(d));) {
                char moved[32];

                if (streq(e->d_name, ".") || streq(e->d_name, ".."))
                        continue;
                if (unlinkat(fd, e->d_name, 0) >= 0)
                        continue;
                if (errno != EISDIR && errno != EPERM)
                        r = negative_errno();
                else if ((r = next_name(s, moved)) >= 0 && renameat(fd, e->d_name, s->top, moved) < 0) {
                        /* To move a directory needs the right to write to it, as its ".." changes. */
                        r = negative_errno();
                        if (r == -EACCES && fchmodat(fd, e->d_name, 0700, 0) >= 0)
                                r = renameat(fd, e->d_name, s->top, moved) < 0 ? -errno : 0;
                }
        }
        closedir(d);
        /* A listing that was changed while it was read may have left something out: that is for the next round. */
        if (r >= 0 && unlinkat(s->top, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY)
                r = negative_errno();
        return r;
}

/* One round over the top; true while there was something to remove. */
static int sweep_top(Sweep *s, bool *ret_again) {
        bool again = false;
        int r = 0;

        DIR *d = fd_opendir(openat(s->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!d)
                return negative_errno();
        for (const struct dirent *e; r >= 0 && (e = readdir(d));) {
                if (streq(e->d_name, ".") || streq(e->d_name, ".."))
                        continue;
                again = true;
                if (unlinkat(s->top, e->d_name, 0) < 0)
                        r = errno == EISDIR || errno == EPERM ? sweep_directory(s, e->d_name) : negative_errno();
        }
        closedir(d);
        if (r >= 0)
                *ret_again = again;
        return r;
}

int tree_empty(int directory) {
        Sweep s = {.top = directory};
        bool again = true;
        struct stat st;
        int r = 0;

        if (fstat(directory, &st) < 0)
                return -errno;
        s.device = st.st_dev;
        while (again && r >= 0)
                r = sweep_top(&s, &again);
        return r;
}
