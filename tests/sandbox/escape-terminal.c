/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The caller's terminal, which is the standard input of the run. */

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "escape.h"

static int terminal(void) {
        if (!isatty(STDIN_FILENO))
                broken("no terminal");
        return STDIN_FILENO;
}
static long request(int fd, unsigned long what, const char *text) {
        return syscall(SYS_ioctl, fd, what, text);
}
static long try_push(const char *high) {
        return request(terminal(), TIOCSTI | number(high), "x");
}
static long try_push_name(const char *high) {
        int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
        return request(fd < 0 ? terminal() : fd, TIOCSTI | number(high), "x");
}
static long try_console(const char *high) {
        return request(terminal(), TIOCLINUX | number(high), "\6");
}
static long try_other(const char *name) {
        return open(fixture(name), O_RDWR | O_CLOEXEC | O_NOCTTY);
}

#define HIGH "0x100000000"
/* Newer kernels can be told to refuse it to all: then there is nothing to protect. */
#define PUSH(n, w, f, a) \
        {.name = n, .what = w, .try = f, .argument = a, .error = EPERM, .stops = STOP_SECCOMP, .optional = true, .ids = "C039"}
/* What is no console answers that it is none, after the filter. */
#define CONSOLE(n, w, f, a) \
        {.name = n, .what = w, .try = f, .argument = a, .error = EPERM, .stops = STOP_SECCOMP, .off_error = ENOTTY, .ids = "C039"}

static const Attempt rows[] = {
        PUSH("terminal-push", "keys pressed in the caller's shell", try_push, "0"),
        PUSH("terminal-push-high-bits", "the same, with bits that a filter might compare", try_push, HIGH),
        PUSH("terminal-push-by-name", "the same by /dev/tty", try_push_name, "0"),
        PUSH("terminal-push-by-name-high-bits", "both", try_push_name, HIGH),
        CONSOLE("console-paste", "a selection pasted", try_console, "0"),
        CONSOLE("console-paste-high-bits", "the same, with bits that a filter might compare", try_console, HIGH),
        {.name = "terminal-other", .what = "another terminal of the account", .try = try_other, .argument = "terminal", .error = ENOENT,
         .stops = STOP_NAMESPACES | STOP_LANDLOCK, .ids = "C039"},
};

const AttemptTable escape_terminal = {rows, sizeof(rows) / sizeof(rows[0])};
