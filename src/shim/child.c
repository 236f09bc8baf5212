/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/secret.h"
#include "basic/text.h"
#include "shim/child.h"
#include "shim/child-private.h"

#define ENVIRONMENT_BYTES_MAX (1024U * 1024U) /* as bailey has it */

void child_done(Child *c) {
        c->gate = safe_close(c->gate);
        c->report = safe_close(c->report);
        c->console = safe_close(c->console);
        c->log = safe_close(c->log);
        c->input = safe_close(c->input);
        c->output = safe_close(c->output);
        c->error = safe_close(c->error);
}

static int add_fd(Start *s, const char *option, int fd) {
        s->keep[s->n_keep++] = fd;
        int r = strv_extend(&s->argv, option);
        return r < 0 ? r : strv_extend_format(&s->argv, "%d", fd);
}

static int add_two(Start *s, const char *option, const char *value) {
        int r = strv_extend(&s->argv, option);
        return r < 0 ? r : strv_extend(&s->argv, value);
}

static int build_arguments(const ShimOptions *o, int report, int console, int error, Start *s) {
        /* What errandd decided is the whole policy: no file of the account's or the project's own adds to it. */
        static const char *const fixed[] = {"bailey", "run", "--quiet", "--json", "--only-config"};
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(fixed) && r >= 0; i++)
                r = strv_extend(&s->argv, fixed[i]);
        if (r >= 0 && o->strict)
                r = strv_extend(&s->argv, "--strict");
        for (size_t i = 0; i < o->n_accepted_gaps && r >= 0; i++)
                r = add_two(s, "--accept-gap", o->accepted_gaps[i]);
        if (r >= 0)
                r = strv_extend(&s->argv, "--config");
        if (r >= 0) {
                s->keep[s->n_keep++] = o->fds[SHIM_FD_POLICY];
                r = strv_extend_format(&s->argv, "/proc/self/fd/%d", o->fds[SHIM_FD_POLICY]);
        }
        if (r >= 0)
                r = add_two(s, "--home", o->home);
        if (r >= 0)
                r = add_fd(s, "--env-fd", o->fds[SHIM_FD_ENVIRONMENT]);
        if (r >= 0)
                r = add_fd(s, "--report-fd", report);
        if (r >= 0 && console >= 0)
                r = add_fd(s, "--console-socket", console);
        if (r >= 0 && console >= 0 && o->rows > 0 && o->columns > 0) {
                r = strv_extend(&s->argv, "--console-size");
                if (r >= 0)
                        r = strv_extend_format(&s->argv, "%ux%u", o->rows, o->columns);
        }
        if (r >= 0 && error >= 0)
                r = add_fd(s, "--stderr-fd", error);
        if (r >= 0 && o->proxy_net)
                r = strv_extend(&s->argv, "--proxy-net");
        if (r >= 0 && o->broker_socket) {
                r = add_two(s, "--broker-socket", o->broker_socket);
                if (r >= 0)
                        r = add_fd(s, "--broker-token-fd", o->fds[SHIM_FD_TOKEN]);
                if (r >= 0)
                        r = add_two(s, "--listen", o->listen);
        }
        if (r >= 0)
                r = strv_extend(&s->argv, "--");
        return r < 0 ? r : strv_extend_list(&s->argv, o->command);
}

/* bailey looks the command up in PATH and passes TERM on: the session's own, which are no secrets. Nothing else of ours. */
static int build_environment(int fd, char ***ret) {
        _cleanup_strv_free_ char **list = NULL;
        struct stat st;
        int r = 0;

        if (fstat(fd, &st) < 0 || st.st_size > ENVIRONMENT_BYTES_MAX)
                return -EFBIG;
        size_t size = (size_t) st.st_size;
        _cleanup_free_ char *data = calloc(size + 1, 1);
        if (!data)
                return -ENOMEM;
        ssize_t n = pread(fd, data, size, 0);
        for (size_t at = 0; n > 0 && at < (size_t) n && r >= 0; at += strlen(data + at) + 1)
                if (startswith(data + at, "PATH=") || startswith(data + at, "TERM="))
                        r = strv_extend(&list, data + at);
        secret_wipe(data, size);
        if (r >= 0 && !list)
                r = strv_extend(&list, "PATH=/usr/local/bin:/usr/bin:/bin");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(list);
        return 0;
}

/* In the child. What comes through the gate is the directory of its group, or nothing, ended by a NUL, in one piece. */
static bool pass_gate(Start *s) {
        char *value = s->cgroup + STRLEN(CGROUP_VARIABLE);
        ssize_t n;

        if (s->gate < 0)
                return true;
        /* So that the shim's end is the end of this, also where it is not its parent's death that tells. */
        (void) close(s->gate_end);
        while ((n = read(s->gate, value, PATH_MAX)) < 0 && errno == EINTR)
                ;
        if (n <= 0 || value[n - 1] != 0)
                return false;
        if (*value)
                *s->cgroup_place = s->cgroup;
        return true;
}

bool child_follow(pid_t parent) {
        const struct sigaction action = {.sa_handler = SIG_DFL};
        sigset_t none;

        /* It may have come before this was asked for. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                return false;
        for (int i = 1; i < NSIG; i++)
                if (i != SIGKILL && i != SIGSTOP)
                        (void) sigaction(i, &action, NULL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        /* What a payload sends to its own process group is not for the shim. */
        (void) setsid();
        return true;
}

/* In the child: only system calls. */
_noreturn_ static void execute(Start *s) {
        static const char failed[] = "bailey: it cannot be executed\n";

        if (!child_follow(s->parent) || !pass_gate(s))
                _exit(EXIT_FAILURE);
        (void) setrlimit(RLIMIT_CORE, &s->core);
        const struct rlimit file = {s->file_max, s->file_max};
        if (s->file_max > 0 && setrlimit(RLIMIT_FSIZE, &file) < 0)
                _exit(125); /* the report says that it is held */
        bool good = fchdir(s->project) == 0;
        for (int i = 0; i <= STDERR_FILENO && good; i++)
                good = dup2(s->standard[i], i) >= 0;
        good = good && fd_close_all_except(3, s->keep, s->n_keep) >= 0;
        for (size_t i = 0; i < s->n_keep && good; i++)
                good = s->keep[i] == s->bailey || fd_cloexec(s->keep[i], false) >= 0;
        if (good)
                (void) syscall(SYS_execveat, s->bailey, "", s->argv, s->environment, AT_EMPTY_PATH);
        (void) !write(STDERR_FILENO, failed, sizeof(failed) - 1);
        _exit(125);
}

static int make_pair(bool wanted, int *ret_ours, int *ret_theirs) {
        int pair[2];

        if (!wanted)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        *ret_ours = pair[0];
        *ret_theirs = pair[1];
        return 0;
}

static int make_pipe(bool wanted, int *ret_ours, int *ret_theirs) {
        int pair[2];

        if (!wanted)
                return 0;
        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        *ret_ours = pair[0];
        *ret_theirs = pair[1];
        return fd_nonblock(pair[0], true);
}

/* The other way round: it is the child that reads. */
static int make_input(bool wanted, int *ret_ours, int *ret_theirs) {
        int pair[2];

        if (!wanted)
                return 0;
        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        *ret_ours = pair[1];
        *ret_theirs = pair[0];
        return 0;
}

static void close_given(ShimOptions *o) {
        static const ShimFd given[] = {SHIM_FD_BAILEY, SHIM_FD_PROJECT, SHIM_FD_POLICY, SHIM_FD_ENVIRONMENT, SHIM_FD_TOKEN,
                                       SHIM_FD_STDIN, SHIM_FD_STDOUT, SHIM_FD_STDERR};

        for (size_t i = 0; i < ELEMENTSOF(given); i++)
                o->fds[given[i]] = safe_close(o->fds[given[i]]);
}

/* A place for the variable that is known only when the child is let go. */
static int reserve_cgroup(Start *s, char ***environment) {
        int r = strv_extend(environment, CGROUP_VARIABLE);
        if (r < 0)
                return r;
        s->cgroup_place = *environment + strv_length(*environment) - 1;
        free(*s->cgroup_place);
        *s->cgroup_place = NULL;
        memcpy(s->cgroup, CGROUP_VARIABLE, STRLEN(CGROUP_VARIABLE));
        return 0;
}

/* To the process that was forked ahead, and is in its scope, or will be. */
static int send_ahead(ShimOptions *o, const Start *s, Child *c) {
        int r = child_send(o->ahead_gate, s);
        if (r < 0)
                return r;
        c->gate = TAKE_FD(o->ahead_gate);
        c->pid = o->ahead_pid;
        o->ahead_pid = 0;
        return 0;
}

static int start(ShimOptions *o, Child *c, const char **ret_what) {
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
        _cleanup_close_ int report = -EBADF, console = -EBADF, log = -EBADF, output = -EBADF, error = -EBADF, gate = -EBADF, input = -EBADF;
        _cleanup_strv_free_ char **argv = NULL, **environment = NULL;
        bool files = !o->interactive;
        int r;

        *ret_what = "pipes";
        if (null < 0)
                return -errno;
        r = make_pair(true, &c->report, &report);
        if (r >= 0)
                r = make_pair(o->interactive, &c->console, &console);
        if (r >= 0)
                r = make_pipe(true, &c->log, &log);
        if (r >= 0)
                r = make_pipe(files && o->fds[SHIM_FD_STDOUT] < 0, &c->output, &output);
        if (r >= 0)
                r = make_pipe(files && o->fds[SHIM_FD_STDERR] < 0, &c->error, &error);
        if (r >= 0)
                r = make_input(o->scope && o->ahead_pid <= 0, &c->gate, &gate);
        if (r >= 0)
                r = make_input(o->conversation, &c->input, &input);
        if (r >= 0 && c->input >= 0)
                r = fd_nonblock(c->input, true);
        if (r < 0)
                return r;

        Start s = {.bailey = o->fds[SHIM_FD_BAILEY], .project = o->fds[SHIM_FD_PROJECT], .parent = getpid(),
                   .file_max = (rlim_t) o->file_max, .gate = gate, .gate_end = c->gate};
        if (getrlimit(RLIMIT_CORE, &s.core) < 0)
                return -errno;
        s.core.rlim_cur = MIN((rlim_t) o->core_limit, s.core.rlim_max);
        s.standard[0] = input >= 0 ? input : files && o->fds[SHIM_FD_STDIN] >= 0 ? o->fds[SHIM_FD_STDIN] : null;
        s.standard[1] = !files ? null : output >= 0 ? output : o->fds[SHIM_FD_STDOUT];
        s.standard[2] = log;
        s.keep[s.n_keep++] = s.bailey;
        *ret_what = "its arguments";
        r = build_arguments(o, report, console, !files ? -EBADF : error >= 0 ? error : o->fds[SHIM_FD_STDERR], &s);
        argv = s.argv;
        if (r >= 0)
                r = build_environment(o->fds[SHIM_FD_ENVIRONMENT], &environment);
        if (r >= 0 && o->scope)
                r = reserve_cgroup(&s, &environment);
        if (r < 0)
                return r;
        s.environment = environment;

        *ret_what = "fork";
        if (o->ahead_pid > 0)
                return send_ahead(o, &s, c);
        pid_t pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                execute(&s);
        c->pid = pid;
        return 0;
}

int child_start(ShimOptions *o, Child *ret, const char **ret_what) {
        Child c = CHILD_NONE;

        if (!o->scope)
                child_drop_ahead(o);
        int r = start(o, &c, ret_what);
        if (r < 0 && o->ahead_pid > 0) { /* it went, or what it is to run is too long for it */
                child_drop_ahead(o);
                child_done(&c);
                c = (Child) CHILD_NONE;
                r = start(o, &c, ret_what);
        }
        close_given(o);
        if (r < 0) {
                child_done(&c);
                return r;
        }
        *ret = c;
        return 0;
}

int child_release(Child *c, const char *cgroup) {
        size_t size = strlen(cgroup ?: "") + 1;

        if (size > PATH_MAX) /* which a pipe takes in one piece */
                return -ENAMETOOLONG;
        ssize_t n = write(c->gate, cgroup ?: "", size);
        int r = n < 0 ? -errno : (size_t) n < size ? -EIO : 0;
        c->gate = safe_close(c->gate);
        return r;
}
