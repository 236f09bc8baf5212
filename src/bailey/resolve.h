/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a path really leads on the host, and over which symbolic links. Links are followed here and only here: everything
 * later opens the real path without following any, and compares device and inode. */

#include "basic/macro.h"

#define RESOLVE_LINKS_MAX 40U /* as the kernel's own limit (path_resolution(7)) */

typedef struct PathLink {
        char *path; /* where the link stands, itself without links */
        char *text; /* what it says */
        dev_t device;
        ino_t inode;
} PathLink;

typedef struct ResolvedPath {
        char *real;   /* collapsed, free of links as far as it exists */
        PathLink *links;
        size_t n_links;
        int error;    /* 0, or a negative errno: why the real path could not be looked at (-ENOENT: not there) */
        dev_t device;
        ino_t inode;
        mode_t mode;
} ResolvedPath;

void resolved_path_done(ResolvedPath *p);

/* path is absolute and collapsed. 0 also when there is no such thing (ret->error); -ELOOP, -ENAMETOOLONG, -ENOMEM. */
int path_resolve(const char *path, ResolvedPath *ret);
