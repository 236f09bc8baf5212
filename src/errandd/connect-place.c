/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "errandd/connect-place.h"
#include "errandd/policy-writer.h"

#define NAME "errand-connect"
#define DIRECTORY ".bin" /* of the state directory: no session's id begins with a dot */
#define TEMPORARY ".new"
#define PROGRAM_SIZE_MAX (64U << 20)

/* The copy has its original's time. */
static bool is_current(int dir, const struct stat *original) {
        struct stat st;

        return fstatat(dir, NAME, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode) && st.st_size == original->st_size &&
               st.st_mtim.tv_sec == original->st_mtim.tv_sec && st.st_mtim.tv_nsec == original->st_mtim.tv_nsec;
}

/* Put in place whole: a session may be executing the one before. */
static int copy(int program, const struct stat *st, int dir) {
        _cleanup_free_ char *data = NULL;
        size_t size;

        int r = read_fd_full(program, PROGRAM_SIZE_MAX, &data, &size);
        if (r < 0)
                return r;
        if (unlinkat(dir, TEMPORARY, 0) < 0 && errno != ENOENT)
                return -errno;
        _cleanup_close_ int fd = openat(dir, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r >= 0 && (fchmod(fd, 0755) < 0 || futimens(fd, (const struct timespec[]){st->st_atim, st->st_mtim}) < 0 ||
                       renameat(dir, TEMPORARY, dir, NAME) < 0))
                r = -errno;
        return r;
}

int connect_place(const Paths *p, char **ret) {
        _cleanup_close_ int program = paths_open_program(NAME), dir = -EBADF;
        _cleanup_free_ char *path = NULL;
        struct stat st;

        int r = program < 0 ? program : path_of_fd(program, &path);
        if (r < 0)
                return r;
        if (!policy_floor_executes(path)) {
                if (fstat(p->state_fd, &st) < 0)
                        return -errno;
                dir = paths_make_dir(p->state_fd, DIRECTORY, p->mode->own, p->uid, st.st_gid);
                if (dir < 0)
                        return dir;
                r = fstat(program, &st) < 0 ? -errno : is_current(dir, &st) ? 0 : copy(program, &st, dir);
                if (r < 0)
                        return r;
                path = mfree(path);
                if (asprintf(&path, "%s/" DIRECTORY "/" NAME, p->state) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
        }
        *ret = TAKE_PTR(path);
        return 0;
}
