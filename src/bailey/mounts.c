/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/mounts.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/path.h"
#include "basic/text.h"

/* The new root hangs over /proc of the old one until the pivot: no source lies there, and a recursive bind of "/" then
 * carries the half-built root only at a place that the plan mounts its own proc over. */
#define ROOT_PLACE "/proc"

/* In the new root's own tmpfs, while it is built: what covers and files are cloned from. What has no name cannot be mounted. */
#define COVER_DIRECTORY ".bailey-cover-directory"
#define COVER_FILE ".bailey-cover-file"
#define CONTENT_FILE ".bailey-content"

typedef struct NewRoot {
        int base; /* the tmpfs that everything is attached to */
        int top;  /* what is seen at "/": the base, or a bind mount over it */
        int cover_directory, cover_file; /* an attached cover, which further ones are cloned from, -EBADF before the first */
        dev_t *own; /* the file systems made here: mount points are made in them, never in a tree of the host */
        size_t n_own;
        /* The directory that something was made in last: most steps make theirs beside that of the step before. */
        char *parent_path;
        int parent;
        bool parent_own;
} NewRoot;

static int own_add(NewRoot *root, int mount) {
        struct stat st;

        if (fstat(mount, &st) < 0)
                return -errno;
        dev_t *grown = reallocarray(root->own, root->n_own + 1, sizeof(dev_t));
        if (!grown)
                return -ENOMEM;
        root->own = grown;
        root->own[root->n_own++] = st.st_dev;
        return 0;
}

static int is_own(const NewRoot *root, int fd, bool *ret) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        *ret = false;
        for (size_t i = 0; i < root->n_own; i++)
                *ret |= root->own[i] == st.st_dev;
        return 0;
}

/* Opens a path below the new root. No link of a bound tree is followed: a link in the way is an error, never a way out. */
static int open_beneath(int root, const char *path, int flags) {
        struct open_how how = {
                .flags = (uint64_t) (unsigned) (flags | O_CLOEXEC | O_NOFOLLOW),
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };
        long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
        return fd < 0 ? negative_errno() : (int) fd;
}

static int open_parent(NewRoot *root, const char *path, const char **ret_name);

/* The directory that open_parent() gave, when something may be made in it; -ENOENT, as if nobody had thought of it, in a tree of
 * the host: whatever was there when the policy was resolved is gone. */
static int open_own_parent(NewRoot *root, const char *path, const char **ret_name) {
        int fd = open_parent(root, path, ret_name);
        return fd < 0 || root->parent_own ? fd : -ENOENT;
}

/* Opens the directory `path`, made with its missing parents where they are missing. */
static int open_directory(NewRoot *root, const char *path) {
        const char *name;

        int fd = open_beneath(root->top, path, O_PATH | O_DIRECTORY);
        if (fd != -ENOENT)
                return fd;
        int parent = open_own_parent(root, path, &name);
        if (parent < 0)
                return parent;
        if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
                return -errno;
        return open_beneath(parent, name, O_PATH | O_DIRECTORY);
}

static void forget_parent(NewRoot *root) {
        root->parent = safe_close(root->parent);
        root->parent_path = mfree(root->parent_path);
}

/* In a tree of the host somebody else may have put another directory there meanwhile. */
static bool knows_parent(const NewRoot *root, const char *path) {
        const char *slash = strrchr(path, '/');
        size_t n = slash > path ? (size_t) (slash - path) : 1;

        return root->parent_path && root->parent_own && strlen(root->parent_path) == n && memcmp(root->parent_path, path, n) == 0;
}

/* Splits a collapsed path other than "/" and opens (makes) the directory part, which the root keeps. *ret_name points into path. */
static int open_parent(NewRoot *root, const char *path, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        bool own = false;

        if (!slash || !slash[1])
                return -EINVAL;
        if (!knows_parent(root, path)) {
                _cleanup_free_ char *parent = path_parent(path);
                if (!parent)
                        return -ENOMEM;
                _cleanup_close_ int fd = open_directory(root, parent);
                int r = fd < 0 ? fd : is_own(root, fd, &own);
                if (r < 0)
                        return r;
                forget_parent(root);
                root->parent = TAKE_FD(fd);
                root->parent_path = TAKE_PTR(parent);
                root->parent_own = own;
        }
        *ret_name = slash + 1;
        return root->parent;
}

static int mount_attach(int tree, int at, const char *name) {
        return move_mount(tree, "", at, name, MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH)) < 0 ? -errno : 0;
}

/* Restricts a detached tree. Flags are only ever added: one that the outer world locked stays as it is. */
static int tree_restrict(int tree, uint64_t attributes, bool recursive) {
        struct mount_attr attr = {.attr_set = attributes, .propagation = MS_PRIVATE};
        return mount_setattr(tree, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static uint64_t step_attributes(const PlanStep *s) {
        return MOUNT_ATTR_NOSUID | (s->flags & STEP_WRITABLE ? 0 : MOUNT_ATTR_RDONLY) |
               (s->flags & STEP_EXECUTABLE ? 0 : MOUNT_ATTR_NOEXEC);
}

typedef struct Parameter {
        const char *key, *value;
} Parameter;

static int filesystem_new(const char *type, const Parameter *parameters, uint64_t attributes) {
        _cleanup_close_ int fs = fsopen(type, FSOPEN_CLOEXEC);
        if (fs < 0)
                return -errno;
        for (; parameters->key; parameters++)
                if (fsconfig(fs, FSCONFIG_SET_STRING, parameters->key, parameters->value, 0) < 0)
                        return -errno;
        if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        int fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned) attributes);
        return fd < 0 ? -errno : fd;
}

/* The place is made when it is missing. What was made just now, where nobody else makes anything, need not be looked at before it is mounted on. */
static int mount_at(NewRoot *root, int tree, const char *path, bool directory) {
        _cleanup_close_ int target = -EBADF;
        const char *name;

        if (streq(path, "/") || !knows_parent(root, path)) {
                target = open_beneath(root->top, path, O_PATH);
                if (target != -ENOENT)
                        return target < 0 ? target : mount_attach(tree, target, "");
        }
        int parent = open_own_parent(root, path, &name);
        if (parent < 0)
                return parent;
        if ((directory ? mkdirat(parent, name, 0755) : mknodat(parent, name, S_IFREG | 0444, 0)) >= 0)
                return mount_attach(tree, parent, name);
        if (errno != EEXIST)
                return -errno;
        target = open_beneath(parent, name, O_PATH);
        return target < 0 ? target : mount_attach(tree, target, "");
}

static int step_filesystem(NewRoot *root, const PlanStep *s, const char *type, const Parameter *parameters, uint64_t attributes) {
        _cleanup_close_ int tree = filesystem_new(type, parameters, attributes);
        return tree < 0 ? tree : mount_at(root, tree, s->target, true);
}

static int step_bind(NewRoot *root, const PlanStep *s) {
        bool device = s->type == STEP_DEVICE;
        struct stat st;
        int r;

        /* Recursive always: a tree with mounts of the outer world below it cannot be cloned without them. */
        _cleanup_close_ int tree = open_tree(AT_FDCWD, path_from_working_directory(s->source),
                                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | (device ? 0 : AT_RECURSIVE));
        if (tree < 0)
                return -errno;
        if (fstat(tree, &st) < 0)
                return -errno;
        if (st.st_dev != s->device || st.st_ino != s->inode)
                return -ESTALE;
        if (device && !S_ISCHR(st.st_mode))
                return -ENODEV;

        r = tree_restrict(tree, step_attributes(s) | (device ? 0 : MOUNT_ATTR_NODEV), !device);
        if (r < 0)
                return r;
        r = mount_at(root, tree, s->target, S_ISDIR(st.st_mode));
        if (r < 0)
                return r;
        if (streq(s->target, "/")) {
                if (root->top != root->base)
                        safe_close(root->top);
                root->top = TAKE_FD(tree);
        }
        return 0;
}

static bool absent(int error) {
        return error == -ENOENT || error == -ENOTDIR;
}

/* Opens what a protection is put over; `wanted`, where it has an inode, says what that was when the policy was resolved. What can
 * be moved away for the moment in which nobody looks would come back without protection. -ENOENT only where absence is fine. */
static int open_protected(int at, const char *path, const PlanStep *wanted, struct stat *ret) {
        bool must = wanted && wanted->inode != 0;

        _cleanup_close_ int target = open_beneath(at, path, O_PATH);
        if (absent(target))
                return must ? -ESTALE : -ENOENT;
        if (target < 0)
                return target;
        if (fstat(target, ret) < 0)
                return -errno;
        if (must && (ret->st_dev != wanted->device || ret->st_ino != wanted->inode))
                return -ESTALE;
        return TAKE_FD(target);
}

static int step_tmpfs(NewRoot *root, const PlanStep *s) {
        char mode[16], size[32];
        struct stat st;
        Parameter parameters[3] = {{"mode", mode}};

        (void) snprintf(mode, sizeof(mode), "%o", (unsigned) (s->mode & 07777));
        if (s->size_bytes > 0) {
                (void) snprintf(size, sizeof(size), "%llu", (unsigned long long) s->size_bytes);
                parameters[1] = (Parameter) {"size", size};
        }
        /* One that is not writable holds mount points all the same: tmpfs_finish() closes it when they are made. */
        _cleanup_close_ int tree = filesystem_new("tmpfs", parameters,
                                                  (step_attributes(s) & ~(uint64_t) MOUNT_ATTR_RDONLY) | MOUNT_ATTR_NODEV);
        if (tree < 0)
                return tree;
        if (s->inode != 0) {
                _cleanup_close_ int covered = open_protected(root->top, s->target, s, &st);
                if (covered < 0)
                        return covered;
        }
        int r = own_add(root, tree);
        return r < 0 ? r : mount_at(root, tree, s->target, true);
}

static int tmpfs_finish(NewRoot *root, const PlanStep *s) {
        struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};

        if (s->type != STEP_TMPFS || (s->flags & STEP_WRITABLE))
                return 0;
        _cleanup_close_ int fd = open_beneath(root->top, s->target, O_PATH);
        if (fd < 0)
                return fd;
        return mount_setattr(fd, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) < 0 ? -errno : 0;
}

/* A detached mount of an empty thing without any permission. */
static int cover_new(const NewRoot *root, bool directory) {
        const char *name = directory ? COVER_DIRECTORY : COVER_FILE;

        if (directory) {
                if (mkdirat(root->base, name, 0) < 0)
                        return -errno;
        } else {
                int fd = openat(root->base, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
                if (fd < 0)
                        return -errno;
                safe_close(fd);
        }
        _cleanup_close_ int tree = open_tree(root->base, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return -errno;
        int r = tree_restrict(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, false);
        return r < 0 ? r : TAKE_FD(tree);
}

static int cover(NewRoot *root, int at, const char *path, const PlanStep *wanted) {
        struct stat st;

        _cleanup_close_ int target = open_protected(at, path, wanted, &st);
        if (target < 0)
                return target == -ENOENT ? 0 : target;

        int *first = S_ISDIR(st.st_mode) ? &root->cover_directory : &root->cover_file;
        if (*first < 0) {
                _cleanup_close_ int made = cover_new(root, S_ISDIR(st.st_mode));
                int r = made < 0 ? made : mount_attach(made, target, "");
                if (r < 0)
                        return r;
                *first = TAKE_FD(made);
                return 0;
        }
        _cleanup_close_ int tree = open_tree(*first, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
        return tree < 0 ? -errno : mount_attach(tree, target, "");
}

static int make_read_only(int at, const char *path, const PlanStep *wanted) {
        struct stat st;

        _cleanup_close_ int target = open_protected(at, path, wanted, &st);
        if (target < 0)
                return target == -ENOENT ? 0 : target;
        _cleanup_close_ int tree = open_tree(target, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
        if (tree < 0)
                return -errno;
        int r = tree_restrict(tree, MOUNT_ATTR_RDONLY, true);
        return r < 0 ? r : mount_attach(tree, target, "");
}

/* In a proc that was made just now: what stands in it is the kernel's. */
static int make_part_read_only(int proc, const char *name) {
        _cleanup_close_ int tree = open_tree(proc, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_RECURSIVE);
        if (tree < 0)
                return absent(-errno) ? 0 : -errno;
        int r = tree_restrict(tree, MOUNT_ATTR_RDONLY, true);
        return r < 0 ? r : mount_attach(tree, proc, name);
}

static int step_proc(NewRoot *root, const PlanStep *s) {
        /* What speaks of and to the whole machine. The files that only root can read are not all here: each mount costs, and
         * the payload is never root. */
        static const char *const read_only[] = {"sys", "sysrq-trigger", "irq", "bus", "fs"};
        static const char *const covered[] = {
                "kcore", "keys", "key-users", "kallsyms", "timer_list", "sched_debug", "latency_stats", "acpi", "scsi",
        };
        static const Parameter none[] = {{}};
        int r;

        _cleanup_close_ int tree = filesystem_new("proc", none, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        if (tree < 0)
                return tree;
        r = mount_at(root, tree, s->target, true);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(read_only); i++)
                r = make_part_read_only(tree, read_only[i]);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(covered); i++)
                r = cover(root, tree, covered[i], NULL);
        return r;
}

static int step_sysfs(NewRoot *root, const PlanStep *s, GapSet *gaps) {
        static const Parameter none[] = {{}};

        int r = step_filesystem(root, s, "sysfs", none,
                                MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
        /* Where the outer world shows no whole /sys the kernel gives none. */
        if (r == -EPERM) {
                *gaps |= 1U << GAP_SYSFS;
                return 0;
        }
        return r;
}

static int step_devpts(NewRoot *root, const PlanStep *s) {
        static const Parameter parameters[] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {}};

        /* Without nodev: its terminals are device nodes, and nobody can make another there. */
        return step_filesystem(root, s, "devpts", parameters, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

static int step_file(NewRoot *root, const PlanStep *s) {
        const char *content = s->content ?: "";
        int r;

        _cleanup_close_ int fd = openat(root->base, CONTENT_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
        if (fd < 0)
                return -errno;
        r = write_all(fd, content, strlen(content));
        if (r < 0)
                return r;
        _cleanup_close_ int tree = open_tree(root->base, CONTENT_FILE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return -errno;
        r = tree_restrict(tree, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, false);
        if (r < 0)
                return r;
        r = mount_at(root, tree, s->target, false);
        if (r < 0)
                return r;
        return unlinkat(root->base, CONTENT_FILE, 0) < 0 ? -errno : 0;
}

static int step_symlink(NewRoot *root, const PlanStep *s) {
        const char *name;

        int parent = open_parent(root, s->target, &name);
        if (parent < 0)
                return parent;
        return symlinkat(s->source, parent, name) < 0 ? -errno : 0;
}

static int step_directory(NewRoot *root, const PlanStep *s) {
        int fd = open_directory(root, s->target);
        if (fd < 0)
                return fd;
        safe_close(fd);
        return 0;
}

static int step_run(NewRoot *root, const PlanStep *s, GapSet *gaps) {
        switch (s->type) {
        case STEP_DIRECTORY:
                return step_directory(root, s);
        case STEP_SYMLINK:
                return step_symlink(root, s);
        case STEP_BIND:
        case STEP_DEVICE:
                return step_bind(root, s);
        case STEP_TMPFS:
                return step_tmpfs(root, s);
        case STEP_PROC:
                return step_proc(root, s);
        case STEP_SYSFS:
                return step_sysfs(root, s, gaps);
        case STEP_DEVPTS:
                return step_devpts(root, s);
        case STEP_FILE:
                return step_file(root, s);
        case STEP_COVER:
                return cover(root, root->top, s->target, s);
        case STEP_READ_ONLY:
                return make_read_only(root->top, s->target, s);
        case _STEP_TYPE_MAX:
        case _STEP_TYPE_INVALID:
                break;
        }
        return -EINVAL;
}

/* For messages only; plan.c has the names that plans are printed with. */
static const char *step_word(StepType t) {
        static const char *const words[_STEP_TYPE_MAX] = {
                [STEP_DIRECTORY] = "directory", [STEP_SYMLINK] = "symbolic link", [STEP_BIND] = "bind mount",
                [STEP_DEVICE] = "device", [STEP_TMPFS] = "tmpfs", [STEP_PROC] = "proc", [STEP_SYSFS] = "sysfs",
                [STEP_DEVPTS] = "devpts", [STEP_FILE] = "file", [STEP_COVER] = "cover", [STEP_READ_ONLY] = "read-only mount",
        };
        return t >= 0 && t < _STEP_TYPE_MAX ? words[t] : "unknown step";
}

static int root_new(NewRoot *root, Failure *f) {
        static const Parameter parameters[] = {{"mode", "0755"}, {}};
        struct mount_attr private = {.propagation = MS_PRIVATE};

        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private, sizeof(private)) < 0)
                return failure_set(f, STAGE_ROOT, errno, "private propagation");
        int fd = filesystem_new("tmpfs", parameters, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        if (fd < 0)
                return failure_set(f, STAGE_ROOT, fd, "tmpfs");
        root->base = root->top = fd;
        int r = own_add(root, fd);
        if (r < 0)
                return failure_set(f, STAGE_ROOT, r, "tmpfs");
        if (move_mount(fd, "", AT_FDCWD, ROOT_PLACE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return failure_set(f, STAGE_ROOT, errno, "over " ROOT_PLACE);
        return 0;
}

static int root_finish(NewRoot *root, Failure *f) {
        struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};

        if (root->cover_directory >= 0 && unlinkat(root->base, COVER_DIRECTORY, AT_REMOVEDIR) < 0)
                return failure_set(f, STAGE_ROOT, errno, COVER_DIRECTORY);
        if (root->cover_file >= 0 && unlinkat(root->base, COVER_FILE, 0) < 0)
                return failure_set(f, STAGE_ROOT, errno, COVER_FILE);
        if (mount_setattr(root->base, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) < 0)
                return failure_set(f, STAGE_ROOT, errno, "read-only");
        return 0;
}

/* Both roots in one place, the old one on top, so that no directory for it is needed; then it is let go. */
static int root_enter(const NewRoot *root, Failure *f) {
        if (fchdir(root->top) < 0)
                return failure_set(f, STAGE_PIVOT, errno, "fchdir");
        if (syscall(SYS_pivot_root, ".", ".") < 0)
                return failure_set(f, STAGE_PIVOT, errno, "pivot_root");
        if (umount2(".", MNT_DETACH) < 0)
                return failure_set(f, STAGE_PIVOT, errno, "detaching the old root");
        if (chdir("/") < 0)
                return failure_set(f, STAGE_PIVOT, errno, "chdir");
        return 0;
}

static int step_take(NewRoot *root, const PlanStep *s, GapSet *gaps, Failure *f) {
        /* What is mounted now would lie over it. */
        if (root->parent_path && path_beneath(root->parent_path, s->target))
                forget_parent(root);
        int r = step_run(root, s, gaps);
        if (r < 0 && s->source)
                return failure_set(f, STAGE_STEP, r, "%s at %s of %s", step_word(s->type), s->target, s->source);
        return r < 0 ? failure_set(f, STAGE_STEP, r, "%s at %s", step_word(s->type), s->target) : 0;
}

/* A sysfs, and what stands in it, waits for the network namespace, so that is done last. */
static int take_steps(NewRoot *root, const Plan *plan, NetworkNamespace *network, GapSet *gaps, Failure *f) {
        const char *last = NULL;
        int r = 0;

        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].type == STEP_SYSFS)
                        last = plan->steps[i].target;
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++)
                if (!last || !path_beneath(plan->steps[i].target, last))
                        r = step_take(root, &plan->steps[i], gaps, f);
        if (r >= 0)
                r = network_namespace_enter(network, f);
        for (size_t i = 0; last && r >= 0 && i < plan->n_steps; i++)
                if (path_beneath(plan->steps[i].target, last))
                        r = step_take(root, &plan->steps[i], gaps, f);
        return r;
}

int mounts_build(const Plan *plan, NetworkNamespace *network, GapSet *gaps, Failure *f) {
        NewRoot root = {.base = -EBADF, .top = -EBADF, .cover_directory = -EBADF, .cover_file = -EBADF, .parent = -EBADF};
        mode_t mask = umask(0);
        int r;

        r = root_new(&root, f);
        if (r >= 0)
                r = take_steps(&root, plan, network, gaps, f);
        for (size_t i = 0; r >= 0 && i < plan->n_steps; i++) {
                r = tmpfs_finish(&root, &plan->steps[i]);
                if (r < 0)
                        r = failure_set(f, STAGE_STEP, r, "read-only tmpfs at %s", plan->steps[i].target);
        }
        if (r >= 0)
                r = root_finish(&root, f);
        if (r >= 0)
                r = root_enter(&root, f);
        (void) umask(mask);

        if (root.top != root.base)
                safe_close(root.top);
        safe_close(root.base);
        free(root.own);
        forget_parent(&root);
        safe_close(root.cover_directory);
        safe_close(root.cover_file);
        return r;
}
