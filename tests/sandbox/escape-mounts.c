/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What paths mean: mounts by the old and the new calls, and roots. Steps that come before the one that is tried may fail; the one that
 * is tried then has no descriptor to work on, which nothing but the kernel's own check would notice. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "escape.h"

/* Own names: the oldest supported C library has some of them, and the oldest kernel headers others. */
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467 /* Linux 6.15 */
#endif
#define CLONE_TREE 1U
#define CONFIG_CREATE 6U
#define EMPTY_FROM 4U /* MOVE_MOUNT_F_EMPTY_PATH */
#define READ_ONLY 1U  /* MOUNT_ATTR_RDONLY */

struct attributes {
        uint64_t set, clear, propagation, user_namespace;
};

static long try_mount(const char *type) {
        return mount("none", place("work/mount"), type, 0, NULL);
}
static long try_bind(const char *flags) {
        return mount("/proc", place("work/mount"), NULL, MS_BIND | number(flags), NULL);
}
static long try_propagation(const char *flags) {
        return mount(NULL, "/", NULL, number(flags), NULL);
}
static long try_remount(const char *flags) {
        return mount(NULL, place("work/mount"), NULL, MS_REMOUNT | number(flags), NULL);
}
static long try_move(const char *a) {
        (void) a;
        return mount(place("work/mount"), place("work/other"), NULL, MS_MOVE, NULL);
}
static long try_umount(const char *flags) {
        return umount2(place("work/mount"), (int) number(flags));
}
static long try_pivot(const char *a) {
        (void) a;
        if (chdir(place("work/mount")) < 0)
                broken("chdir");
        return syscall(SYS_pivot_root, ".", ".");
}
static long try_chroot(const char *a) {
        (void) a;
        return chroot(place("work"));
}
static long try_open_tree(const char *flags) {
        return syscall(SYS_open_tree, AT_FDCWD, place("work/mount"), number(flags));
}
static long try_open_tree_attr(const char *a) {
        struct attributes attributes = {.set = READ_ONLY};

        (void) a;
        return syscall(SYS_open_tree_attr, AT_FDCWD, place("work/mount"), CLONE_TREE, &attributes, sizeof(attributes));
}

static long new_mount(unsigned stage) {
        long context = syscall(SYS_fsopen, "tmpfs", 0);
        if (stage == 0)
                return context;
        long r = syscall(SYS_fsconfig, context, CONFIG_CREATE, NULL, NULL, 0);
        if (stage == 1)
                return r;
        long tree = syscall(SYS_fsmount, context, 0, 0);
        if (stage == 2)
                return tree;
        return syscall(SYS_move_mount, tree, "", AT_FDCWD, place("work/mount"), EMPTY_FROM);
}
static long try_new(const char *stage) {
        return new_mount((unsigned) number(stage));
}
static long try_fspick(const char *a) {
        (void) a;
        return syscall(SYS_fspick, AT_FDCWD, place("work/mount"), 0);
}
static long try_setattr(const char *a) {
        struct attributes attributes = {.set = READ_ONLY};

        (void) a;
        return syscall(SYS_mount_setattr, AT_FDCWD, place("work/mount"), 0, &attributes, sizeof(attributes));
}

#define SYSTEM (STOP_SECCOMP | STOP_PRIVILEGE)
#define ROW(n, w, f, a) {.name = n, .what = w, .try = f, .argument = a, .error = EPERM, .stops = SYSTEM, .off = OFF_PRIVATE, .ids = "C041 T016"}

static const Attempt rows[] = {
        ROW("mount-tmpfs", "an empty directory over a file that counts", try_mount, "tmpfs"),
        ROW("mount-proc", "a /proc that is writable", try_mount, "proc"),
        ROW("mount-sysfs", "a /sys of its own", try_mount, "sysfs"),
        ROW("mount-cgroup2", "the control groups, and so the limits", try_mount, "cgroup2"),
        ROW("mount-mqueue", "message queues as files", try_mount, "mqueue"),
        ROW("mount-devpts", "terminals of another instance", try_mount, "devpts"),
        ROW("mount-bind", "a tree without the flags of its mount", try_bind, "0"),
        ROW("mount-bind-recursive", "a whole tree at another place", try_bind, "0x4000"),
        ROW("mount-private", "mounts that follow nobody", try_propagation, "0x44000"),
        ROW("mount-slave", "mounts that come in from outside", try_propagation, "0x84000"),
        ROW("mount-shared", "mounts that go out of the sandbox", try_propagation, "0x104000"),
        ROW("remount", "another size of a file system", try_remount, "0"),
        ROW("remount-bind", "a read-only mount writable again", try_remount, "0x1000"),
        ROW("mount-move", "a mount away from what it covers", try_move, NULL),
        ROW("umount", "what lies below a mount", try_umount, "0"),
        ROW("umount-detach", "what lies below a busy mount", try_umount, "2"),
        ROW("pivot-root", "another root", try_pivot, NULL),
        ROW("chroot", "a root to climb out of", try_chroot, NULL),
        ROW("open-tree-clone", "a copy of a mount, new call", try_open_tree, "1"),
        ROW("fsopen", "a new file system, new calls", try_new, "0"),
        ROW("fsconfig", "options of a new file system", try_new, "1"),
        ROW("fsmount", "a mount of a new file system", try_new, "2"),
        ROW("move-mount", "a mount to its place, new call", try_new, "3"),
        ROW("fspick", "options of a file system that is there", try_fspick, NULL),
        ROW("mount-setattr", "flags of a mount, new call", try_setattr, NULL),
        {.name = "open-tree", .what = "a mount's descriptor, which needs no privilege", .try = try_open_tree, .argument = "0", .error = EPERM,
         .stops = STOP_SECCOMP, .ids = "C041"},
        {.name = "open-tree-attr", .what = "a copy of a mount with other flags, by a call that is newer than the filter",
         .try = try_open_tree_attr, .error = ENOSYS, .stops = SYSTEM, .off = OFF_PRIVATE, .since = 0x060f, .ids = "C041"},
};

const AttemptTable escape_mounts = {rows, sizeof(rows) / sizeof(rows[0])};
