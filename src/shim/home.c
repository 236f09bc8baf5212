/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "shim/home.h"

/* The key of a server is checked as ssh does by default: nobody else answers for a host that is merely allowed. */
static const char ssh_config[] =
        "# From errand, when this home was new; yours to change. A session reaches other hosts through its proxy alone.\n"
        "Host * !localhost !127.0.0.1 !::1\n"
        "    ProxyCommand errand-connect %h %p\n";

static int write_ssh_config(const char *home) {
        _cleanup_close_ int home_fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), ssh = -EBADF, file = -EBADF;

        if (home_fd < 0 || mkdirat(home_fd, ".ssh", 0700) < 0)
                return -errno;
        ssh = openat(home_fd, ".ssh", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (ssh < 0)
                return -errno;
        file = openat(ssh, "config", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0)
                return -errno;
        int r = write_all(file, ssh_config, strlen(ssh_config));
        if (r < 0)
                (void) unlinkat(ssh, "config", 0); /* half of it is worse than none */
        return r;
}

void home_prepare(const char *home) {
        if (mkdir(home, 0700) < 0)
                return;
        int r = write_ssh_config(home);
        if (r < 0)
                log_warning_errno(r, "%s/.ssh/config cannot be written, so ssh will not find its way out: %m", home);
}
