/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/fd.h"
#include "launch/peer.h"

int peer_connect(const char *path, int type, struct ucred *ret_peer) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *slash = strrchr(path, '/');
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (!slash)
                return -EINVAL;
        _cleanup_free_ char *parent = strndup(path, (size_t) (slash - path) + 1);
        if (!parent)
                return -ENOMEM;
        _cleanup_close_ int directory = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0)
                return -errno;
        _cleanup_close_ int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if ((size_t) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory, slash + 1) >=
            sizeof(address.sun_path))
                return -ENAMETOOLONG;
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        *ret_peer = peer;
        return TAKE_FD(fd);
}
