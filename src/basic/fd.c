/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/secret.h"

/* More than any message of ours carries: setup (keys, spool, a CA file per provider) is the largest. */
#define FDS_MAX 16U

int safe_close(int fd) {
        if (fd >= 0) {
                int saved = errno;
                (void) close(fd);
                errno = saved;
        }
        return -EBADF;
}

static int compare_int(const void *a, const void *b) {
        int x = *(const int *) a, y = *(const int *) b;
        return (x > y) - (x < y);
}

static int close_between(unsigned first, unsigned last) {
        if (first > last)
                return 0;
        return syscall(SYS_close_range, first, last, 0) < 0 ? -errno : 0;
}

int fd_close_all_except(int first, const int *keep, size_t n_keep) {
        int sorted[64];
        int r;

        if (n_keep > ELEMENTSOF(sorted))
                return -E2BIG;
        if (n_keep > 0)
                memcpy(sorted, keep, n_keep * sizeof(int));
        qsort(sorted, n_keep, sizeof(int), compare_int);

        unsigned from = (unsigned) first;
        for (size_t i = 0; i < n_keep; i++) {
                if (sorted[i] < (int) from)
                        continue;
                if (sorted[i] > (int) from) {
                        r = close_between(from, (unsigned) sorted[i] - 1);
                        if (r < 0)
                                return r;
                }
                from = (unsigned) sorted[i] + 1;
        }
        return close_between(from, UINT_MAX);
}

int fd_fill_standard(void) {
        for (;;) {
                int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
                if (fd < 0)
                        return -errno;
                if (fd > STDERR_FILENO)
                        return close(fd) < 0 ? -errno : 0;
                if (fcntl(fd, F_SETFD, 0) < 0)
                        return -errno;
        }
}

int fd_nonblock(int fd, bool on) {
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0)
                return -errno;
        int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
        if (wanted == flags)
                return 0;
        return fcntl(fd, F_SETFL, wanted) < 0 ? -errno : 0;
}

int fd_cloexec(int fd, bool on) {
        return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

DIR *fd_opendir(int fd) {
        DIR *d = fd < 0 ? NULL : fdopendir(fd);

        if (!d)
                safe_close(fd);
        return d;
}

uint64_t fd_system_used(int fd) {
        struct statvfs st;

        if (fstatvfs(fd, &st) < 0 || st.f_blocks < st.f_bfree)
                return 0;
        return (uint64_t) (st.f_blocks - st.f_bfree) * st.f_frsize;
}

int memfd_new_sealed(const char *name, const void *data, size_t size) {
        _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;

        int r = write_all(fd, data, size);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return -errno;
        return TAKE_FD(fd);
}

bool memfd_is_sealed(int fd) {
        const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
        int seals = fcntl(fd, F_GET_SEALS);

        return seals >= 0 && (seals & wanted) == wanted;
}

int memfd_read_sealed(int fd, size_t max, char **ret, size_t *ret_size) {
        struct stat st;

        if (!memfd_is_sealed(fd))
                return -EINVAL;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((uintmax_t) st.st_size > max)
                return -E2BIG;
        size_t size = (size_t) st.st_size;
        char *data = malloc(size + 1);
        if (!data)
                return -ENOMEM;
        ssize_t n = pread(fd, data, size, 0);
        if (n < 0 || (size_t) n < size) {
                int r = n < 0 ? -errno : -EIO;
                secret_wipe(data, size);
                free(data);
                return r;
        }
        data[size] = 0;
        *ret = data;
        *ret_size = size;
        return 0;
}

ssize_t send_fds(int sock, const void *data, size_t size, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr align;
                char buffer[CMSG_SPACE(sizeof(int) * FDS_MAX)];
        } control = {};
        struct iovec iov = {.iov_base = (void *) data, .iov_len = size};
        struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

        if (n_fds > FDS_MAX)
                return -E2BIG;
        if (n_fds > 0) {
                mh.msg_control = control.buffer;
                mh.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
                memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
        }

        for (;;) {
                ssize_t n = sendmsg(sock, &mh, MSG_NOSIGNAL);
                if (n >= 0)
                        return n;
                if (errno != EINTR)
                        return -errno;
        }
}

ssize_t recv_fds(int sock, void *data, size_t size, int *ret_fds, size_t max_fds, size_t *ret_n_fds) {
        union {
                struct cmsghdr align;
                char buffer[CMSG_SPACE(sizeof(int) * FDS_MAX)];
        } control = {};
        struct iovec iov = {.iov_base = data, .iov_len = size};
        struct msghdr mh = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control.buffer,
                .msg_controllen = sizeof(control.buffer),
        };
        int fds[FDS_MAX];
        size_t n_fds = 0;
        ssize_t n;

        do
                n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c)) {
                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                size_t k = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < k; i++) {
                        int fd;
                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                        if (n_fds < ELEMENTSOF(fds))
                                fds[n_fds++] = fd;
                        else
                                safe_close(fd);
                }
        }

        if ((mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || n_fds > max_fds) {
                for (size_t i = 0; i < n_fds; i++)
                        safe_close(fds[i]);
                return -EMSGSIZE;
        }
        if (n_fds > 0)
                memcpy(ret_fds, fds, n_fds * sizeof(int));
        *ret_n_fds = n_fds;
        return n;
}
