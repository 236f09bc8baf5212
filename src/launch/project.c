/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The list is written as the kernel takes it (linux/posix_acl_xattr.h): five entries that never differ in form. libacl sets a directory's
 * default list by path only; here nothing but descriptors is used, and the kernel checks what it is given. */

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "launch/project.h"
#include "shared/project-name.h"

#define PROJECT_MODE 02770
#define EVERYTHING (ACL_READ | ACL_WRITE | ACL_EXECUTE)

typedef struct Acl {
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entries[5];
} Acl;

static struct posix_acl_xattr_entry entry(uint16_t tag, uint16_t permissions, uint32_t id) {
        return (struct posix_acl_xattr_entry){.e_tag = htole16(tag), .e_perm = htole16(permissions), .e_id = htole32(id)};
}

/* The owner of the project beside this account and its group, nobody else. */
static int set_acls(int fd, uid_t owner) {
        const uint32_t none = (uint32_t) ACL_UNDEFINED_ID;
        const Acl acl = {
                .header = {.a_version = htole32(POSIX_ACL_XATTR_VERSION)},
                .entries = {entry(ACL_USER_OBJ, EVERYTHING, none), entry(ACL_USER, EVERYTHING, owner), entry(ACL_GROUP_OBJ, EVERYTHING, none),
                            entry(ACL_MASK, EVERYTHING, none), entry(ACL_OTHER, 0, none)},
        };

        if (fsetxattr(fd, "system.posix_acl_access", &acl, sizeof(acl), 0) < 0 ||
            fsetxattr(fd, "system.posix_acl_default", &acl, sizeof(acl), 0) < 0)
                return -errno;
        return 0;
}

/* No link, no other file system, nothing above. */
static int open_directory(int root, const char *name) {
        const struct open_how how = {
                .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
        };
        long fd = syscall(SYS_openat2, root, name, &how, sizeof(how));

        return fd < 0 ? -errno : (int) fd;
}

/* A directory of ours, whatever else was made of the name. */
static int open_own(int root, const char *name) {
        struct stat st;

        _cleanup_close_ int fd = open_directory(root, name);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        return st.st_uid == geteuid() ? TAKE_FD(fd) : -EPERM;
}

static int set_up(int fd, uid_t owner) {
        if (fchown(fd, (uid_t) -1, getegid()) < 0 || fchmod(fd, PROJECT_MODE) < 0)
                return -errno;
        return set_acls(fd, owner);
}

/* Under a name that no project has, so that one that was begun only is never taken for a project. */
static int make(int root, const char *name, uid_t owner) {
        char temporary[PROJECT_NAME_MAX + 8];

        (void) snprintf(temporary, sizeof(temporary), ".new-%s", name);
        (void) unlinkat(root, temporary, AT_REMOVEDIR); /* of one that was interrupted */
        if (mkdirat(root, temporary, 0700) < 0)
                return -errno;
        _cleanup_close_ int fd = open_own(root, temporary);
        int r = fd < 0 ? fd : set_up(fd, owner);
        if (r >= 0 && renameat2(root, temporary, root, name, RENAME_NOREPLACE) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(root, temporary, AT_REMOVEDIR);
        return r;
}

static const char *make_problem(int r) {
        switch (r) {
        case -EOPNOTSUPP:
                return "its file system keeps no access control lists";
        case -EACCES:
                return "the account that sessions run as cannot write to the place of projects; systemd-tmpfiles --create sets the usual one right";
        case -EROFS:
                return "the place of projects is on a read-only file system; if it was made since errandd.service was started, restart that";
        default:
                return strerror(-r);
        }
}

int project_make(int root, const char *name, uid_t owner, char **ret_problem) {
        const char *problem = project_name_problem(name);
        struct stat st;

        if (problem) {
                (void) problem_set(ret_problem, "the project's name %s", problem);
                return -EINVAL;
        }
        if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
                int r = make(root, name, owner);
                if (r >= 0)
                        return 1;
                if (r != -EEXIST) {
                        (void) problem_set(ret_problem, "the project %s cannot be made: %s", name, make_problem(r));
                        return r;
                }
        }
        _cleanup_close_ int fd = open_own(root, name);
        if (fd >= 0)
                return 0;
        (void) problem_set(ret_problem, "the project %s is there, but %s", name,
                           fd == -EPERM ? "belongs to another account; give it to the one that sessions run as, or choose another name"
                                        : "is no directory beneath the place of projects");
        return fd;
}

void project_settle(int *fd) {
        const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
        char link[32], path[PATH_MAX];
        struct stat theirs, ours;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", *fd);
        ssize_t n = readlink(link, path, sizeof(path) - 1);
        if (n <= 0)
                return;
        path[n] = 0;
        _cleanup_close_ int here = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
        if (here < 0 || fstat(*fd, &theirs) < 0 || fstat(here, &ours) < 0 || theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino)
                return;
        safe_close(*fd);
        *fd = TAKE_FD(here);
}
