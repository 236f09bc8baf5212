/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "errandd/state-lock.h"

#define LOCK_NAME ".lock"

int state_lock(int state_dir) {
        char text[16];

        _cleanup_close_ int fd = openat(state_dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        /* Only a help for people: the lock counts, not what is written. */
        int n = snprintf(text, sizeof(text), "%d\n", (int) getpid());
        if (ftruncate(fd, 0) >= 0)
                (void) write_all(fd, text, (size_t) n);
        return TAKE_FD(fd);
}

pid_t state_lock_holder(int state_dir) {
        char text[16] = "";
        uint64_t pid;

        _cleanup_close_ int fd = openat(state_dir, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return 0;
        ssize_t n = read_all(fd, text, sizeof(text) - 1);
        if (n <= 1 || text[n - 1] != '\n' || parse_u64_n(text, (size_t) n - 1, INT_MAX, &pid) < 0)
                return 0;
        return (pid_t) pid;
}
