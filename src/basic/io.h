/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* Writes all of it to a blocking fd, over EINTR and short writes. 0 or a negative errno. */
int write_all(int fd, const void *data, size_t size);

/* Reads until `size` bytes or end of file. Returns the bytes read or a negative errno. */
ssize_t read_all(int fd, void *data, size_t size);

/* Reads a whole file of at most `max` bytes from an open fd; *ret is NUL-terminated beyond *ret_size and the caller's to
 * free. -EFBIG when it is larger, -EISDIR for a directory. */
int read_fd_full(int fd, size_t max, char **ret, size_t *ret_size);

/* The same by path (O_NOCTTY, O_CLOEXEC; symlinks are followed). */
int read_file_full(const char *path, size_t max, char **ret, size_t *ret_size);

/* Writes `text` to an existing file such as one under /proc, in one write. */
int write_file_once(const char *path, const char *text);
