/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bailey/console.h"
#include "basic/fd.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41) /* Linux 4.13 */
#endif

int console_open(const char *devpts, int sock, uint16_t rows, uint16_t columns, int *ret_terminal, Failure *f) {
        static const char message[] = "{\"v\":1,\"type\":\"console\",\"fds\":[\"terminal\"]}";
        char path[PATH_MAX];
        int unlock = 0;

        if ((size_t) snprintf(path, sizeof(path), "%s/ptmx", devpts) >= sizeof(path))
                return failure_set(f, STAGE_CONSOLE, ENAMETOOLONG, "%s", devpts);
        _cleanup_close_ int master = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (master < 0)
                return failure_set(f, STAGE_CONSOLE, errno, "%s", path);
        if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
                return failure_set(f, STAGE_CONSOLE, errno, "unlocking it");
        _cleanup_close_ int terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (terminal < 0)
                return failure_set(f, STAGE_CONSOLE, errno, "its other side");
        /* Before the payload can ask for it. */
        const struct winsize size = {.ws_row = rows, .ws_col = columns};
        if (rows > 0 && columns > 0 && ioctl(master, TIOCSWINSZ, &size) < 0)
                return failure_set(f, STAGE_CONSOLE, errno, "its size");
        ssize_t n = send_fds(sock, message, sizeof(message) - 1, &master, 1);
        if (n < 0)
                return failure_set(f, STAGE_CONSOLE, (int) n, "sending it");
        *ret_terminal = TAKE_FD(terminal);
        return 0;
}

int console_adopt(int terminal) {
        if (setsid() < 0)
                return -errno;
        if (ioctl(terminal, TIOCSCTTY, 0) < 0)
                return -errno;
        for (int fd = 0; fd <= 2; fd++)
                if (dup2(terminal, fd) < 0)
                        return -errno;
        return 0;
}
