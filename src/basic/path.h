/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* Collapses "//", "." and ".." by text alone; ".." at the root stays at the root. s must be absolute (-EINVAL), and the
 * result shorter than PATH_MAX (-ENAMETOOLONG). *ret is the caller's to free. */
int path_collapse(const char *s, char **ret);

/* The same of one that is seen from the working directory. A negative errno where that has no name. */
int path_make_absolute(const char *s, char **ret);

/* base + "/" + relative, collapsed. An absolute `relative` is -EINVAL; one that climbs out of base is -EXDEV. */
int path_join_beneath(const char *base, const char *relative, char **ret);

/* For collapsed paths: path == dir or lies below it. */
bool path_beneath(const char *path, const char *dir);

/* How a system call names a collapsed path best: from the working directory on when it is that or lies below it, so that no directory
 * above, which may be closed to this process, is passed again; else path itself. Part of path, or ".". */
const char *path_from_working_directory(const char *path);

/* Components of a collapsed path; 0 for "/". */
unsigned path_depth(const char *path);

/* The directory part of a collapsed path ("/" for "/x"). NULL when out of memory. */
char *path_parent(const char *path);
