/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/embedded.h"
#include "errand/exit.h"

#define START_USEC (60 * USEC_PER_SEC) /* errandd probes its backend first, on a busy machine too */
#define OTHER_USEC (5 * USEC_PER_SEC)
#define OTHER_POLL_MSEC 50
#define POLL_MSEC 20
#define WORDS_MAX (64U * 1024U) /* every problem of a configuration */
#define CMDLINE_MAX (64U * 1024U)
#define ERRANDD_OTHER_SERVES 4 /* errandd's exit codes */

int embedded_connect(const Paths *p, int *ret) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        struct ucred peer = {};
        socklen_t size = sizeof(peer);
        struct stat st;
        _cleanup_close_ int dir = -EBADF, fd = -EBADF;

        dir = open(p->runtime, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
                return errno == ELOOP || errno == ENOTDIR ? -EACCES : -errno;
        /* In another's directory the name may be a link to any socket of ours. */
        if (fstat(dir, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() || (st.st_mode & 0022))
                return -EXDEV;
        (void) snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/bus", dir);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                return -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        if (peer.uid != geteuid())
                return -EBADE;
        *ret = TAKE_FD(fd);
        return 0;
}

bool embedded_was_given(int socket, const char *name, const char *value) {
        _cleanup_free_ char *words = NULL;
        struct ucred peer = {};
        socklen_t length = sizeof(peer);
        char path[64];
        size_t size;

        if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
                return false;
        (void) snprintf(path, sizeof(path), "/proc/%d/cmdline", peer.pid);
        if (read_file_full(path, CMDLINE_MAX, &words, &size) < 0)
                return false;
        for (const char *w = words; w < words + size; w += strlen(w) + 1) {
                const char *next = w + strlen(w) + 1;

                if (streq(w, name))
                        return next < words + size && streq(next, value);
        }
        return false;
}

bool embedded_has_state(const Paths *p) {
        char path[PATH_MAX];

        return (size_t) snprintf(path, sizeof(path), "%s/.records", p->state) < sizeof(path) && access(path, F_OK) >= 0;
}

/* Between fork and exec. */
_noreturn_ static void become_daemon(int program, int words, char *const *argv) {
        sigset_t none;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void) setsid();
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) signal(SIGPIPE, SIG_DFL);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(words, STDERR_FILENO) < 0)
                _exit(EXIT_NOT_SET_UP);
        /* Nothing that this program was given is for the daemon: a pipe that it held would never end. */
        (void) fd_close_all_except(3, &program, 1);
        (void) fexecve(program, argv, environ);
        _exit(EXIT_NOT_EXECUTABLE);
}

/* What errandd says before it serves, as it is: its lines name their program. */
static void tell(char *text) {
        char *rest = text, *line;

        while ((line = strsep(&rest, "\n")))
                if (*line) {
                        _cleanup_free_ char *clean = string_escape_control(line);
                        if (clean)
                                fprintf(stderr, "%s\n", clean);
                }
}

/* It closes its standard error when it serves, and when it ends; that it serves is tried now and then, too, since a program that it started may
 * hold the other end. 0, or -ETIMEDOUT. */
static int await_socket(const Paths *p, int words, char text[static WORDS_MAX + 1], int *ret) {
        usec_t deadline = now_monotonic() + START_USEC;
        struct pollfd fd = {.fd = words, .events = POLLIN};
        char rest[4096];
        size_t size = 0;

        for (;;) {
                ssize_t n = 1;

                text[size] = 0;
                if (poll(&fd, 1, POLL_MSEC) > 0) {
                        n = size < WORDS_MAX ? read(words, text + size, WORDS_MAX - size) : read(words, rest, sizeof(rest));
                        if (n > 0 && size < WORDS_MAX)
                                size += (size_t) n;
                } else if (embedded_connect(p, ret) >= 0)
                        return 0;
                if (n == 0)
                        return embedded_connect(p, ret);
                if (now_monotonic() >= deadline)
                        return -ETIMEDOUT;
        }
}

/* 0: it serves, *ret is a connection; > 0: it ended, with that code; -ETIMEDOUT. */
static int start_once(const Paths *p, int program, char *const *argv, int *ret) {
        _cleanup_close_ int words = -EBADF;
        _cleanup_free_ char *text = malloc(WORDS_MAX + 1);
        int ends[2], status, r;
        pid_t pid;

        if (!text || pipe2(ends, O_CLOEXEC) < 0)
                return text ? negative_errno() : -ENOMEM;
        words = ends[0];
        pid = fork();
        if (pid == 0)
                become_daemon(program, ends[1], argv);
        r = pid < 0 ? negative_errno() : 0;
        close(ends[1]);
        if (r < 0)
                return r;

        r = await_socket(p, words, text, ret);
        if (r >= 0) {
                tell(text);
                return 0;
        }
        /* Not serving is ending; what does neither is ended. */
        if (r == -ETIMEDOUT)
                (void) kill(pid, SIGKILL);
        if (waitpid(pid, &status, 0) < 0)
                return negative_errno();
        if (!WIFEXITED(status) || WEXITSTATUS(status) != ERRANDD_OTHER_SERVES)
                tell(text);
        return r == -ETIMEDOUT ? r : WIFEXITED(status) ? MAX(WEXITSTATUS(status), 1) : 128 + WTERMSIG(status);
}

/* Another one holds the state directory: it is about to answer, or about to end. */
static int await_other(const Paths *p, int program, char *const *argv, int *ret) {
        usec_t deadline = now_monotonic() + OTHER_USEC;
        int r;

        for (;;) {
                if (embedded_connect(p, ret) >= 0)
                        return 0;
                (void) poll(NULL, 0, OTHER_POLL_MSEC); /* there is no event for a lock that is let go */
                r = start_once(p, program, argv, ret);
                if (r != ERRANDD_OTHER_SERVES || now_monotonic() > deadline)
                        return r;
        }
}

static int refuse_start(const Paths *p, int r) {
        if (r == -ETIMEDOUT)
                log_error("errandd --embedded was started and did not serve %s in time, so it was ended", p->bus);
        else if (r < 0)
                log_error_errno(r, "Failed to start errandd --embedded: %m");
        else if (r == ERRANDD_OTHER_SERVES)
                log_error("another errandd serves %s, and does not answer at %s; end it, or name another directory with --state-dir", p->state,
                          p->bus);
        else
                log_error("errandd --embedded did not start (exit code %d), so nothing was run", r);
        return r == EXIT_CONFIGURATION ? EXIT_CONFIGURATION : EXIT_NO_DAEMON;
}

static size_t add_option(const char **argv, size_t n, const char *name, const char *value) {
        if (!value)
                return n;
        argv[n] = name;
        argv[n + 1] = value;
        return n + 2;
}

int embedded_start(const Paths *p, const Request *q, int *ret) {
        const char *argv[9] = {"errandd", "--embedded"};
        _cleanup_close_ int program = -EBADF;
        size_t n = 2;
        int r;

        program = paths_open_program("errandd");
        if (program < 0) {
                log_error_errno(program, "Failed to find the program errandd, which belongs beside errand or into " ERRAND_LIBEXEC_DIR ": %m");
                return EXIT_NO_DAEMON;
        }
        n = add_option(argv, n, "--state-dir", q->state_dir);
        n = add_option(argv, n, "--config", q->config ? p->config : NULL); /* absolute, for embedded_was_given() */
        (void) add_option(argv, n, "--account", q->account);
        r = start_once(p, program, (char *const *) argv, ret);
        if (r == ERRANDD_OTHER_SERVES) /* two were started at one time, or the last one is ending */
                r = await_other(p, program, (char *const *) argv, ret);
        return r == 0 ? EXIT_OK : refuse_start(p, r);
}
