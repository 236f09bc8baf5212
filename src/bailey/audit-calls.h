/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The system calls that an audit looks at: those that name a path, an address or a file to be executed. Each name becomes numbers at
 * build time, one for each architecture; a row's place in this table is what the two sides agree in. */

typedef enum AuditAction {
        AUDIT_LOOK,          /* whether it is there, and what it is */
        AUDIT_LOOK_LINK,     /* the same of a link itself */
        AUDIT_OPEN,          /* by its flags */
        AUDIT_OPEN_HOW,      /* by a struct open_how */
        AUDIT_CHANGE,        /* contents or attributes */
        AUDIT_CHANGE_LINK,   /* a directory's entry: made, removed, renamed */
        AUDIT_MAKE,          /* a directory's entry, which is none when it is there */
        AUDIT_EXECUTE,
        AUDIT_MAP,           /* a file's text mapped to be executed: a library */
        AUDIT_CONNECT,
        AUDIT_BIND,
        AUDIT_SEND,          /* a datagram with an address */
        AUDIT_MESSAGE,       /* by a struct msghdr */
        AUDIT_MESSAGES,      /* by some struct mmsghdr */
        AUDIT_LOST,          /* what is done by it, or after it, cannot be seen */
} AuditAction;

typedef struct AuditCall {
        const char *name;
        AuditAction action;
        /* Arguments: of path and its directory, of flags that hold AT_*; -1 where there is none. For addresses: socket, address, size. */
        signed char directory, path, flags;
        signed char second_directory, second_path; /* -1, or 0 for none: a second path is never the first argument */
} AuditCall;

static const AuditCall audit_calls[] = {
        {"open", AUDIT_OPEN, -1, 0, 1, 0, 0},
        {"openat", AUDIT_OPEN, 0, 1, 2, 0, 0},
        {"openat2", AUDIT_OPEN_HOW, 0, 1, 2, 0, 0},
        {"creat", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"execve", AUDIT_EXECUTE, -1, 0, -1, 0, 0},
        {"execveat", AUDIT_EXECUTE, 0, 1, 4, 0, 0},
        {"mmap", AUDIT_MAP, -1, -1, -1, 0, 0},
        {"mmap2", AUDIT_MAP, -1, -1, -1, 0, 0},
        {"connect", AUDIT_CONNECT, 0, 1, 2, 0, 0},
        {"bind", AUDIT_BIND, 0, 1, 2, 0, 0},
        {"sendto", AUDIT_SEND, 0, 4, 5, 0, 0},
        {"sendmsg", AUDIT_MESSAGE, 0, 1, -1, 0, 0},
        {"sendmmsg", AUDIT_MESSAGES, 0, 1, 2, 0, 0},
        {"socketcall", AUDIT_LOST, -1, -1, -1, 0, 0},
        {"io_uring_setup", AUDIT_LOST, -1, -1, -1, 0, 0},
        {"chroot", AUDIT_LOST, -1, -1, -1, 0, 0},
        {"pivot_root", AUDIT_LOST, -1, -1, -1, 0, 0},

        {"stat", AUDIT_LOOK, -1, 0, -1, 0, 0},
        {"stat64", AUDIT_LOOK, -1, 0, -1, 0, 0},
        {"lstat", AUDIT_LOOK_LINK, -1, 0, -1, 0, 0},
        {"lstat64", AUDIT_LOOK_LINK, -1, 0, -1, 0, 0},
        {"newfstatat", AUDIT_LOOK, 0, 1, 3, 0, 0},
        {"fstatat64", AUDIT_LOOK, 0, 1, 3, 0, 0},
        {"statx", AUDIT_LOOK, 0, 1, 2, 0, 0},
        {"statfs", AUDIT_LOOK, -1, 0, -1, 0, 0},
        {"statfs64", AUDIT_LOOK, -1, 0, -1, 0, 0},
        {"access", AUDIT_LOOK, -1, 0, -1, 0, 0},
        {"faccessat", AUDIT_LOOK, 0, 1, -1, 0, 0},
        {"faccessat2", AUDIT_LOOK, 0, 1, 3, 0, 0},
        {"readlink", AUDIT_LOOK_LINK, -1, 0, -1, 0, 0},
        {"readlinkat", AUDIT_LOOK_LINK, 0, 1, -1, 0, 0},
        {"chdir", AUDIT_LOOK, -1, 0, -1, 0, 0},
        {"getxattr", AUDIT_LOOK, -1, 0, -1, 0, 0},
        {"lgetxattr", AUDIT_LOOK_LINK, -1, 0, -1, 0, 0},
        {"inotify_add_watch", AUDIT_LOOK, -1, 1, -1, 0, 0},

        {"mkdir", AUDIT_MAKE, -1, 0, -1, 0, 0},
        {"mkdirat", AUDIT_MAKE, 0, 1, -1, 0, 0},
        {"rmdir", AUDIT_CHANGE_LINK, -1, 0, -1, 0, 0},
        {"unlink", AUDIT_CHANGE_LINK, -1, 0, -1, 0, 0},
        {"unlinkat", AUDIT_CHANGE_LINK, 0, 1, -1, 0, 0},
        {"mknod", AUDIT_MAKE, -1, 0, -1, 0, 0},
        {"mknodat", AUDIT_MAKE, 0, 1, -1, 0, 0},
        {"rename", AUDIT_CHANGE_LINK, -1, 0, -1, -1, 1},
        {"renameat", AUDIT_CHANGE_LINK, 0, 1, -1, 2, 3},
        {"renameat2", AUDIT_CHANGE_LINK, 0, 1, -1, 2, 3},
        {"link", AUDIT_CHANGE_LINK, -1, 0, -1, -1, 1},
        {"linkat", AUDIT_CHANGE_LINK, 0, 1, -1, 2, 3},
        {"symlink", AUDIT_MAKE, -1, 1, -1, 0, 0},
        {"symlinkat", AUDIT_MAKE, 1, 2, -1, 0, 0},
        {"truncate", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"truncate64", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"chmod", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"fchmodat", AUDIT_CHANGE, 0, 1, -1, 0, 0},
        {"chown", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"chown32", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"lchown", AUDIT_CHANGE_LINK, -1, 0, -1, 0, 0},
        {"lchown32", AUDIT_CHANGE_LINK, -1, 0, -1, 0, 0},
        {"fchownat", AUDIT_CHANGE, 0, 1, 4, 0, 0},
        {"utime", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"utimes", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"futimesat", AUDIT_CHANGE, 0, 1, -1, 0, 0},
        {"utimensat", AUDIT_CHANGE, 0, 1, 3, 0, 0},
        {"utimensat_time64", AUDIT_CHANGE, 0, 1, 3, 0, 0},
        {"setxattr", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"lsetxattr", AUDIT_CHANGE_LINK, -1, 0, -1, 0, 0},
        {"removexattr", AUDIT_CHANGE, -1, 0, -1, 0, 0},
        {"lremovexattr", AUDIT_CHANGE_LINK, -1, 0, -1, 0, 0},
};
