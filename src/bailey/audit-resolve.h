/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a path leads for a process that is observed, as the kernel would find it from that process's root directory. What is not
 * there is followed by its name alone. */

#include <limits.h>

#include "basic/macro.h"

/* What a place that may be a symbolic link says, by its path in the view: the length, or a negative errno (-EINVAL: no link). */
typedef ssize_t (*ViewReadLink)(void *context, const char *path, char *ret, size_t size);

typedef struct View {
        ViewReadLink read_link;
        void (*followed)(void *context, const char *path); /* told of each link that was followed, where it stands; may be NULL */
        void *context;
} View;

/* path is absolute, not collapsed: ".." is taken where the walk has come to. follow: also a link at the end, which a slash behind it
 * asks for, too. 0 with a path that is collapsed; -ELOOP, -ENAMETOOLONG. */
int view_resolve(const View *view, const char *path, bool follow, char ret[PATH_MAX]);

/* A process's view. */
typedef struct ProcessView {
        int root;      /* its root directory; -EBADF: not known yet */
        pid_t thread;  /* whose call it is */
        char **links;  /* that were followed, for the caller to take */
} ProcessView;

/* For View.read_link; context is a ProcessView. */
ssize_t process_read_link(void *context, const char *path, char *ret, size_t size);
void process_followed(void *context, const char *path);
