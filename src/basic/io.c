/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"

int write_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n = write(fd, p, size);
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                p += n;
                size -= (size_t) n;
        }
        return 0;
}

ssize_t read_all(int fd, void *data, size_t size) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = read(fd, (char *) data + done, size - done);
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

int read_fd_full(int fd, size_t max, char **ret, size_t *ret_size) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;

        /* The size is a hint only: /proc files say 0, and a growing file must not overflow the buffer. */
        size_t room = S_ISREG(st.st_mode) && st.st_size > 0 && (size_t) st.st_size <= max ? (size_t) st.st_size + 1 : 4096;
        size_t size = 0;
        _cleanup_free_ char *buffer = NULL;

        for (;;) {
                char *grown = realloc(buffer, room + 1);
                if (!grown)
                        return -ENOMEM;
                buffer = grown;

                ssize_t n = read_all(fd, buffer + size, room - size);
                if (n < 0)
                        return (int) n;
                size += (size_t) n;
                if (size > max)
                        return -EFBIG;
                if (size < room)
                        break;
                room *= 2;
        }
        buffer[size] = 0;
        *ret = TAKE_PTR(buffer);
        if (ret_size)
                *ret_size = size;
        return 0;
}

int read_file_full(const char *path, size_t max, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        return read_fd_full(fd, max, ret, ret_size);
}

int write_file_once(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        size_t size = strlen(text);
        ssize_t n = write(fd, text, size);
        if (n < 0)
                return -errno;
        return (size_t) n == size ? 0 : -EIO;
}
