/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "errand/tty-agent.h"

#define AGENT "/usr/bin/pkttyagent" /* by its place: what a PATH finds would be trusted with a password */
#define REGISTER_MSEC 5000 /* polkitd may have to be started */

/* Between fork and exec. */
_noreturn_ static void become_agent(int notify, pid_t parent) {
        char number[16];
        char *const argv[] = {(char *) "pkttyagent", (char *) "--notify-fd", number, (char *) "--fallback", NULL};
        sigset_t none;

        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(1); /* it would be an agent of somebody else */
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) signal(SIGPIPE, SIG_DFL);
        (void) fd_close_all_except(3, &notify, 1);
        (void) snprintf(number, sizeof(number), "%d", notify);
        if (fcntl(notify, F_SETFD, 0) >= 0)
                (void) execv(AGENT, argv);
        _exit(1);
}

/* The agent asks at the controlling terminal, whatever the three streams are. */
static bool has_terminal(void) {
        _cleanup_close_ int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

        return fd >= 0 && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

pid_t tty_agent_start(void) {
        _cleanup_close_ int ready = -EBADF;
        struct pollfd fd = {.events = POLLIN};
        pid_t pid, parent = getpid();
        int ends[2];

        if (geteuid() == 0 || !has_terminal() || access(AGENT, X_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0)
                return 0;
        ready = ends[0];
        pid = fork();
        if (pid == 0)
                become_agent(ends[1], parent);
        close(ends[1]);
        if (pid < 0)
                return 0;
        /* It closes its end when it is registered, or ends. */
        fd.fd = ready;
        while (poll(&fd, 1, REGISTER_MSEC) < 0 && errno == EINTR)
                ;
        return pid;
}

void tty_agent_stop(pid_t pid) {
        if (pid <= 0)
                return;
        (void) kill(pid, SIGTERM);
        (void) kill(pid, SIGCONT);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
