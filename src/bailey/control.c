/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/socket.h>

#include "bailey/control.h"
#include "basic/fd.h"

int control_new(int ret_pair[2]) {
        return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_pair) < 0 ? -errno : 0;
}

int control_send(int fd, const ControlMessage *m, const int *fds, size_t n_fds) {
        ssize_t n;

        if (n_fds > 0)
                n = send_fds(fd, m, sizeof(*m), fds, n_fds);
        else {
                /* A call that an audit does not look at. */
                while ((n = send(fd, m, sizeof(*m), MSG_NOSIGNAL)) < 0 && errno == EINTR)
                        ;
                n = n < 0 ? -errno : n;
        }
        return n < 0 ? (int) n : 0;
}

int control_receive(int fd, ControlMessage *ret, int *ret_fds, size_t *ret_n_fds) {
        ControlMessage m;

        ssize_t n = recv_fds(fd, &m, sizeof(m), ret_fds, CONTROL_FDS_MAX, ret_n_fds);
        /* It left without reading what it was sent, which is told before the last that it said. */
        if (n == -ECONNRESET)
                n = recv_fds(fd, &m, sizeof(m), ret_fds, CONTROL_FDS_MAX, ret_n_fds);
        if (n == 0 || n == -ECONNRESET)
                return 0;
        if (n < 0)
                return (int) n;
        if (n != sizeof(m))
                return -EBADMSG;
        *ret = m;
        return 1;
}
