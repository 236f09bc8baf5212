/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/io.h"
#include "connect/relay.h"

/* Standard input and output are shared with others, a terminal for one, so they stay blocking: a thread for each direction. */

#define PIECE_SIZE (64U * 1024U)

/* 0 at the end of `from`. The errors of the two sides are told apart. */
static int copy(int from, int to, int *ret_write_error) {
        _cleanup_free_ char *buffer = malloc(PIECE_SIZE);

        if (!buffer)
                return -ENOMEM;
        for (;;) {
                ssize_t n = read(from, buffer, PIECE_SIZE);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                int r = write_all(to, buffer, (size_t) n);
                if (r < 0) {
                        *ret_write_error = r;
                        return 0;
                }
        }
}

static void *send_input(void *userdata) {
        int fd = *(int *) userdata, write_error = 0;

        (void) copy(STDIN_FILENO, fd, &write_error);
        /* A far side that takes nothing more says the rest in the other direction. */
        (void) shutdown(fd, SHUT_WR);
        return NULL;
}

int relay(int fd) {
        int write_error = 0;
        pthread_t thread;

        int r = pthread_create(&thread, NULL, send_input, &fd);
        if (r != 0)
                return -r;
        r = copy(fd, STDOUT_FILENO, &write_error);
        if (r < 0 || write_error < 0)
                return r; /* the process ends with it, and the thread, too */
        (void) close(STDOUT_FILENO);
        (void) pthread_join(thread, NULL);
        return 0;
}
