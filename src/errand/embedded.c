/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
#define OTHER_USEC (5 * USEC_PER_SEC)  /* another one holds the state directory and is about to answer, or about to end */
#define POLL_MSEC 10
#define LAST_WORDS_MAX (64U * 1024U)
#define ERRANDD_OTHER_SERVES 4 /* errandd's exit codes */

int embedded_connect(const Paths *p, int *ret) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        struct ucred peer = {};
        socklen_t size = sizeof(peer);
        _cleanup_close_ int dir = -EBADF, fd = -EBADF;

        dir = open(p->runtime, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
                return errno == ELOOP || errno == ENOTDIR ? -EACCES : -errno;
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

bool embedded_has_state(const Paths *p) {
        char path[PATH_MAX];

        return (size_t) snprintf(path, sizeof(path), "%s/.records", p->state) < sizeof(path) && access(path, F_OK) >= 0;
}

static int open_program(void) {
        static const char *const beside[] = {"errandd", "../errandd/errandd"}; /* installed together, the build tree */
        const char *named = getenv("ERRAND_LIBEXEC");
        char self[PATH_MAX], path[PATH_MAX + 64];
        ssize_t n;
        int fd;

        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        self[n > 0 ? n : 0] = 0;
        if (strrchr(self, '/'))
                *strrchr(self, '/') = 0;
        for (size_t i = 0; i < ELEMENTSOF(beside); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", named && named[0] == '/' ? named : self, beside[i]);
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
                if (fd >= 0)
                        return fd;
        }
        fd = open(ERRAND_LIBEXECDIR "/errandd", O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? -errno : fd;
}

/* Between fork and exec. */
_noreturn_ static void become_daemon(int program, int log, char *const *argv) {
        sigset_t none;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void) setsid();
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) signal(SIGPIPE, SIG_DFL);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
                _exit(EXIT_NOT_SET_UP);
        /* Nothing that this program was given is for the daemon: a pipe that it held would never end. */
        (void) fd_close_all_except(3, &program, 1);
        (void) fexecve(program, argv, environ);
        _exit(EXIT_NOT_EXECUTABLE);
}

/* What errandd wrote into its log since `from`, as it is: its lines say their program. */
static void tell_last_words(int log, off_t from) {
        _cleanup_free_ char *text = malloc(LAST_WORDS_MAX + 1);
        char *line, *rest;
        ssize_t n;

        if (!text)
                return;
        n = pread(log, text, LAST_WORDS_MAX, from);
        if (n <= 0)
                return;
        text[n] = 0;
        rest = text;
        while ((line = strsep(&rest, "\n")))
                if (*line) {
                        _cleanup_free_ char *clean = string_escape_control(line);
                        if (clean)
                                fprintf(stderr, "%s\n", clean);
                }
}

static int child_code(int status) {
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* 0: it serves, *ret is a connection; > 0: it ended, with that code; -ETIMEDOUT. */
static int await_socket(const Paths *p, pid_t pid, int *ret) {
        usec_t deadline = now_monotonic() + START_USEC;
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        int status;

        if (pidfd < 0)
                return negative_errno();
        for (;;) {
                struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

                /* There is no event for "somebody listens there now" that could not be missed. */
                if (embedded_connect(p, ret) >= 0)
                        return 0;
                if (poll(&poll_fd, 1, POLL_MSEC) > 0) {
                        if (waitpid(pid, &status, 0) < 0)
                                return negative_errno();
                        return MAX(child_code(status), 1);
                }
                if (now_monotonic() > deadline) {
                        (void) kill(pid, SIGTERM);
                        return -ETIMEDOUT;
                }
        }
}

static int await_other(const Paths *p, int *ret) {
        usec_t deadline = now_monotonic() + OTHER_USEC;
        int r;

        while ((r = embedded_connect(p, ret)) < 0 && now_monotonic() < deadline)
                (void) poll(NULL, 0, POLL_MSEC);
        return r;
}

static int start_once(Paths *p, int program, int log, char *const *argv, int *ret) {
        pid_t pid = fork();

        if (pid < 0)
                return negative_errno();
        if (pid == 0)
                become_daemon(program, log, argv);
        return await_socket(p, pid, ret);
}

static int refuse_start(const Paths *p, int r, int log, off_t from) {
        tell_last_words(log, from);
        if (r == -ETIMEDOUT)
                log_error("errandd --embedded was started and does not answer at %s; its log is %s/errandd.log", p->bus, p->runtime);
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

int embedded_start(Paths *p, const Request *q, int *ret) {
        const char *argv[9] = {"errandd", "--embedded"};
        _cleanup_close_ int program = -EBADF, log = -EBADF;
        Fault f = {};
        size_t n = 2;
        off_t from;
        int r;

        program = open_program();
        if (program < 0) {
                log_error_errno(program, "Failed to find the program errandd, which belongs beside errand or into " ERRAND_LIBEXECDIR ": %m");
                return EXIT_NO_DAEMON;
        }
        if (paths_open(p, &f) < 0) {
                log_error("%s", f.text ?: "the state directory cannot be used");
                fault_done(&f);
                return EXIT_NO_DAEMON;
        }
        log = openat(p->runtime_fd, "errandd.log", O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
        if (log < 0) {
                log_error_errno(errno, "Failed to open %s/errandd.log: %m", p->runtime);
                return EXIT_NO_DAEMON;
        }
        from = lseek(log, 0, SEEK_END);
        n = add_option(argv, n, "--state-dir", q->state_dir);
        n = add_option(argv, n, "--config", q->config);
        (void) add_option(argv, n, "--user", q->user);
        r = start_once(p, program, log, (char *const *) argv, ret);
        if (r == ERRANDD_OTHER_SERVES && await_other(p, ret) >= 0)
                r = 0; /* two were started at one time, and the other one was faster */
        return r == 0 ? EXIT_OK : refuse_start(p, r, log, MAX(from, (off_t) 0));
}
