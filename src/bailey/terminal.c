/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "bailey/terminal.h"
#include "basic/fd.h"
#include "basic/log.h"

/* What one side wrote and the other has not taken yet. As long as it is not empty nothing more is read. */
typedef struct Direction {
        char data[16384];
        size_t size, done;
} Direction;

typedef struct Copier {
        int master, signals;
        struct termios before;
        bool raw; /* and before is what to go back to */
        bool input_ended;
        Direction in, out;
} Copier;

bool terminal_present(void) {
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Only when something is shown: warnings of a start are lines in the terminal as it was, and so is what is typed before. */
static void go_raw(Copier *c) {
        struct termios raw;

        if (c->raw || tcgetattr(STDIN_FILENO, &c->before) < 0)
                return;
        raw = c->before;
        cfmakeraw(&raw);
        c->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) >= 0;
}

static void go_back(const Copier *c) {
        if (c->raw)
                (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &c->before);
}

static void copy_size(const Copier *c) {
        struct winsize size;

        if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) >= 0)
                (void) ioctl(c->master, TIOCSWINSZ, &size);
}

/* False when it is time to go. */
static bool handle_signals(Copier *c) {
        struct signalfd_siginfo info;

        while (read(c->signals, &info, sizeof(info)) == sizeof(info)) {
                if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
                        return false;
                if (info.ssi_signo == SIGWINCH)
                        copy_size(c);
        }
        return true;
}

static bool fill(int fd, Direction *d) {
        ssize_t n = read(fd, d->data, sizeof(d->data));

        if (n <= 0)
                return n < 0 && (errno == EAGAIN || errno == EINTR);
        d->size = (size_t) n;
        d->done = 0;
        return true;
}

static bool drain(int fd, Direction *d) {
        ssize_t n = write(fd, d->data + d->done, d->size - d->done);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        d->done += (size_t) n;
        if (d->done == d->size)
                d->size = d->done = 0;
        return true;
}

/* One round; false at the end. */
static bool copy(Copier *c) {
        struct pollfd polls[] = {
                {.fd = c->in.size || c->input_ended ? -1 : STDIN_FILENO, .events = POLLIN},
                {.fd = c->out.size ? STDOUT_FILENO : -1, .events = POLLOUT},
                {.fd = c->master, .events = (short) ((c->out.size ? 0 : POLLIN) | (c->in.size ? POLLOUT : 0))},
                {.fd = c->signals, .events = POLLIN},
        };

        if (poll(polls, ELEMENTSOF(polls), -1) < 0)
                return errno == EINTR;
        if (polls[3].revents && !handle_signals(c))
                return false;
        if (polls[1].revents && !drain(STDOUT_FILENO, &c->out))
                return false;
        if (polls[0].revents && !fill(STDIN_FILENO, &c->in))
                c->input_ended = true;
        if ((polls[2].revents & POLLOUT) && c->in.size && !drain(c->master, &c->in))
                return false;
        if ((polls[2].revents & (POLLIN | POLLHUP | POLLERR)) && !c->out.size) {
                /* EIO: nobody has the other side any more. */
                if (!fill(c->master, &c->out))
                        return false;
                go_raw(c);
        }
        return true;
}

static int open_signals(void) {
        sigset_t set;

        (void) sigfillset(&set);
        if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
                return -errno;
        int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

/* Holds the terminal, the master and nothing else. Dies with its parent, whose end is the session's. */
_noreturn_ static void run(int sock, pid_t parent) {
        static Copier c; /* too large for a stack */
        char message[256];
        size_t n = 0;

        c.master = -EBADF;
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent || fd_close_all_except(3, &sock, 1) < 0)
                _exit(EXIT_FAILURE);
        c.signals = open_signals();
        if (c.signals < 0 || recv_fds(sock, message, sizeof(message), &c.master, 1, &n) <= 0 || n != 1)
                _exit(EXIT_FAILURE);
        close(sock);
        if (fd_nonblock(c.master, true) < 0)
                _exit(EXIT_FAILURE);
        copy_size(&c); /* it may have changed while the sandbox was made */
        while (copy(&c))
                ;
        go_back(&c);
        _exit(EXIT_SUCCESS);
}

int terminal_start(Terminal *ret) {
        struct winsize size = {};
        int pair[2];

        /* In the background it waits like any other program that wants the terminal. */
        while (tcgetpgrp(STDIN_FILENO) >= 0 && tcgetpgrp(STDIN_FILENO) != getpgrp())
                if (kill(0, SIGTTIN) < 0)
                        break;
        (void) ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return log_error_errno(errno, "Failed to make a socket: %m");
        pid_t parent = getpid(), pid = fork();
        if (pid < 0) {
                int r = log_error_errno(errno, "Failed to start a process: %m");
                safe_close(pair[0]);
                safe_close(pair[1]);
                return r;
        }
        if (pid == 0) {
                safe_close(pair[1]);
                run(pair[0], parent);
        }
        safe_close(pair[0]);
        *ret = (Terminal){.socket = pair[1], .pid = pid, .rows = size.ws_row, .columns = size.ws_col};
        return 0;
}

void terminal_end(Terminal *t) {
        if (t->socket < 0)
                return;
        t->socket = safe_close(t->socket);
        while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
