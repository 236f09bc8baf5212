/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <dirent.h>

#include "basic/macro.h"

/* Closes fd if it is one, keeps errno, returns -EBADF: fd = safe_close(fd). */
int safe_close(int fd);

static inline void closep(int *fd) {
        *fd = safe_close(*fd);
}
#define _cleanup_close_ _cleanup_(closep)

/* Closes every fd from `first` up except those in keep[] (sorted or not). Returns 0 or a negative errno. */
int fd_close_all_except(int first, const int *keep, size_t n_keep);

/* A program's first step: a standard stream that it got closed is /dev/null, for what it starts, too, since the next file opened would become it. */
int fd_fill_standard(void);

/* Sets or clears O_NONBLOCK / FD_CLOEXEC. */
int fd_nonblock(int fd, bool on);
int fd_cloexec(int fd, bool on);

/* That directory, to read and to close, the fd with it; NULL with errno. What openat() gave can be passed as it is: where it failed,
 * its errno is the answer. */
DIR *fd_opendir(int fd /* taken */);

/* How many bytes are in use of the whole file system that it is on; 0: that does not say. */
uint64_t fd_system_used(int fd);

/* A memfd with `data` in it, sealed against every change, offset 0. For secrets: never swapped to a path, never truncated. */
int memfd_new_sealed(const char *name, const void *data, size_t size);

/* Whether what is in it stays as it is: a memfd sealed against writing, shrinking and growing. */
bool memfd_is_sealed(int fd);

/* All that is in such a memfd, a NUL behind it; *ret is to free, and to wipe where it is secret. -EINVAL: it is none; -E2BIG: it has more than max bytes. */
int memfd_read_sealed(int fd, size_t max, char **ret, size_t *ret_size);

/* Sends one datagram or some stream bytes with up to 16 fds over a unix socket. Returns bytes sent or a negative errno. */
ssize_t send_fds(int sock, const void *data, size_t size, const int *fds, size_t n_fds);

/* Receives with fds (all O_CLOEXEC). *ret_n_fds fds are the caller's to close. A message or fd list that was cut
 * (MSG_TRUNC, MSG_CTRUNC) is -EMSGSIZE and leaves no fd open. 0 = end of file. */
ssize_t recv_fds(int sock, void *data, size_t size, int *ret_fds, size_t max_fds, size_t *ret_n_fds);
