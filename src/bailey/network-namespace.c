/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/control.h"
#include "bailey/network-namespace.h"
#include "basic/fd.h"

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894c /* Linux 4.10 */
#endif

static int raise_loopback(int fd) {
        struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

        return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/* In the child of vfork(), in the supervisor's memory: only system calls. The user namespace is the sandbox's from here on, and with
 * it whatever may be done to the new network namespace. */
static int make(int process, int control, Failure *f) {
        const ControlMessage m = {.type = CONTROL_ENTER};

        if (setns(process, CLONE_NEWUSER) < 0)
                return errno == ESRCH ? 0 : failure_set(f, STAGE_NAMESPACES, errno, "entering the user's");
        if (unshare(CLONE_NEWNET) < 0)
                return failure_set(f, STAGE_NAMESPACES, errno, "%s", "");
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        _cleanup_close_ int made = fd < 0 ? -EBADF : ioctl(fd, SIOCGSKNS);
        int r = made < 0 ? -errno : control_send(control, &m, &made, 1);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                return failure_set(f, STAGE_NAMESPACES, r, "handing the network's over");
        /* The child goes on meanwhile, and raises it itself when it comes to need it. */
        (void) raise_loopback(fd);
        return 0;
}

int network_namespace_give(int process, int control, Failure *f) {
        const ControlMessage none = {.type = CONTROL_ENTER};
        volatile int result = -ECHILD;

        pid_t pid = vfork();
        if (pid < 0)
                return failure_set(f, STAGE_NAMESPACES, errno, "a process for the network's");
        if (pid == 0) {
                result = make(process, control, f);
                _exit(EXIT_SUCCESS);
        }
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        /* Killed, perhaps after it had sent, and the command may run already: what became of that the child alone can tell. It takes the
         * first of two messages, and the second, which has no namespace, ends it where it waits. */
        if (result == -ECHILD) {
                (void) control_send(control, &none, NULL, 0);
                return 0;
        }
        return result;
}

int network_namespace_enter(NetworkNamespace *n, Failure *f) {
        int fds[CONTROL_FDS_MAX], control = n->control;
        ControlMessage m;
        size_t n_fds = 0;

        if (control < 0)
                return 0;
        n->control = -EBADF;
        int r = control_receive(control, &m, fds, &n_fds);
        if (r <= 0 || m.type != CONTROL_ENTER || n_fds != 1)
                return failure_set(f, STAGE_PROCESS, ECONNRESET, "awaiting its network namespace");
        n->fd = fds[0];
        return setns(n->fd, CLONE_NEWNET) < 0 ? failure_set(f, STAGE_NAMESPACES, errno, "entering the network's") : 0;
}

int network_namespace_raise(Failure *f) {
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        int r = fd < 0 ? -errno : raise_loopback(fd);

        return r < 0 ? failure_set(f, STAGE_LOOPBACK, r, "lo") : 0;
}
