/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "errand/terminal.h"

static volatile sig_atomic_t raw;
static int raw_fd = -EBADF;
static struct termios before;
static const char *volatile undo;

/* A bug of ours must not leave a terminal that echoes nothing. The signal comes again, with its default, when this returns. */
static void fatal_handler(int signal) {
        terminal_restore();
        (void) raise(signal);
}

static void catch_fatal_signals(void) {
        static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};
        struct sigaction action = {.sa_handler = fatal_handler, .sa_flags = SA_RESETHAND | SA_NODEFER};

        for (size_t i = 0; i < ELEMENTSOF(fatal); i++)
                (void) sigaction(fatal[i], &action, NULL);
}

int terminal_raw(int fd) {
        static bool prepared;
        struct termios t;

        if (!raw && tcgetattr(fd, &before) < 0)
                return -errno;
        t = before;
        cfmakeraw(&t);
        if (!prepared) {
                catch_fatal_signals();
                (void) atexit(terminal_restore);
                prepared = true;
        }
        raw_fd = fd;
        raw = 1;
        return tcsetattr(fd, TCSADRAIN, &t) < 0 ? -errno : 0;
}

void terminal_undo(const char *sequences) {
        undo = sequences;
}

void terminal_restore(void) {
        const char *s = undo;

        if (!raw)
                return;
        raw = 0;
        undo = NULL;
        if (s && *s)
                (void) !write(STDOUT_FILENO, s, strlen(s));
        (void) tcsetattr(raw_fd, TCSADRAIN, &before);
}

int terminal_size(int fd, uint16_t *ret_rows, uint16_t *ret_columns) {
        struct winsize size;

        if (ioctl(fd, TIOCGWINSZ, &size) < 0)
                return -errno;
        /* A serial line does not know, and says 0. */
        *ret_rows = size.ws_row ?: 24;
        *ret_columns = size.ws_col ?: 80;
        return 0;
}
