/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/control.h"
#include "bailey/pasta.h"
#include "bailey/report.h"
#include "bailey/supervise.h"
#include "basic/fd.h"
#include "basic/log.h"

int signals_take(SignalState *state, int *ret_fd) {
        static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigset_t set;

        (void) sigfillset(&set);
        for (size_t i = 0; i < ELEMENTSOF(synchronous); i++)
                (void) sigdelset(&set, synchronous[i]);

        _cleanup_close_ int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0)
                return -errno;
        if (sigprocmask(SIG_BLOCK, &set, &state->mask) < 0)
                return -errno;
        if (sigaction(SIGCHLD, &action, &state->child) < 0) {
                int r = -errno;
                (void) sigprocmask(SIG_SETMASK, &state->mask, NULL);
                return r;
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

void signals_give_back(const SignalState *state, int fd) {
        struct signalfd_siginfo info;

        /* What came while the run lasted was the run's (and a SIGPIPE our own): it must not end the caller now. */
        while (read(fd, &info, sizeof(info)) == sizeof(info))
                ;
        (void) sigaction(SIGCHLD, &state->child, NULL);
        (void) sigprocmask(SIG_SETMASK, &state->mask, NULL);
}

static int prepared(Supervisor *s, const ControlMessage *m, const int *fds, size_t n_fds, Failure *f) {
        ControlMessage go = {.type = CONTROL_GO};
        int r;

        for (Gap g = 0; g < _GAP_MAX; g++)
                if (m->gaps & (1U << g))
                        log_warning("not enforced: %s (%s)", gap_to_string(g), gap_describe(g));
        s->result->gaps |= m->gaps;

        if (s->options->report >= 0) {
                Report report = {
                        .gaps = s->result->gaps,
                        .pid = s->child,
                        .landlock_abi = s->result->landlock_abi,
                        .isolated = s->result->isolated,
                        .pidfd = s->pidfd,
                        .user_namespace = n_fds == CONTROL_FDS_MAX ? fds[0] : -EBADF,
                        .network_namespace = n_fds == CONTROL_FDS_MAX ? fds[1] : -EBADF,
                };
                r = report_write(s->options->report, &report);
                if (r < 0)
                        return failure_set(f, STAGE_REPORT, r, "descriptor %d", s->options->report);
        }
        r = control_send(s->control, &go, NULL, 0);
        return r < 0 ? failure_set(f, STAGE_PROCESS, r, "the first process went away") : 0;
}

static int ended(Supervisor *s, const ControlMessage *m) {
        RunResult *result = s->result;

        result->survivors = m->survivors;
        result->started = m->exec_error == 0;
        if (m->exec_error > 0)
                /* As shells have it: 127 not found, 126 found and not executable. */
                result->status = m->exec_error == ENOENT || m->exec_error == ENOTDIR ? 127 : 126;
        else if (WIFSIGNALED(m->wait_status)) {
                result->signal = WTERMSIG(m->wait_status);
                result->status = 128 + result->signal;
        } else
                result->status = WEXITSTATUS(m->wait_status);
        return 1;
}

/* The child ended without a word: it was killed, and everything inside with it. */
static int vanished(Supervisor *s, Failure *f) {
        int status = 0;

        while (waitpid(s->child, &status, 0) < 0 && errno == EINTR)
                ;
        s->child = -ESRCH;
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : SIGKILL;
        if (!s->progress->started)
                return failure_set(f, STAGE_PROCESS, 0, "it was killed by signal %d", number);
        log_error("the sandbox's first process was killed by signal %d%s", number,
                  s->result->isolated ? ", and all others with it" : "; without a PID namespace, what the command started may still run");
        s->result->started = true;
        s->result->killed = true;
        s->result->status = 128 + number;
        return 1;
}

static int take_listener(const Supervisor *s, const int *fds, size_t n_fds, Failure *f) {
        Observer *o = s->options->observer;

        if (!o || n_fds != 1)
                return failure_set(f, STAGE_PROCESS, EBADMSG, "its message");
        int r = o->begin(o, s->plan, fds[0]);
        return r < 0 ? failure_set(f, STAGE_SECCOMP, r, "listening to system calls") : 0;
}

/* One message. 1 = the end was told, 0 = go on, negative = failed. */
static int handle_control(Supervisor *s, Failure *f) {
        int fds[CONTROL_FDS_MAX];
        size_t n_fds = 0;
        ControlMessage m;

        int r = control_receive(s->control, &m, fds, &n_fds);
        if (r < 0)
                return failure_set(f, STAGE_PROCESS, r, "its message");
        if (r == 0)
                return vanished(s, f);

        switch (m.type) {
        case CONTROL_LISTENER:
                r = take_listener(s, fds, n_fds, f);
                n_fds = r < 0 ? n_fds : 0;
                break;
        case CONTROL_PREPARED:
                r = prepared(s, &m, fds, n_fds, f);
                break;
        case CONTROL_STOPPED:
                /* As the shell expects of a job. The signal that continues it comes by the signalfd and is sent on. */
                r = s->interactive && kill(getpid(), SIGSTOP) < 0 ? failure_set(f, STAGE_PROCESS, errno, "SIGSTOP") : 0;
                break;
        case CONTROL_ENDED:
                r = ended(s, &m);
                if (m.exec_error > 0)
                        (void) failure_set(f, STAGE_EXECUTE, m.exec_error, "%s", "");
                break;
        case CONTROL_FAILED:
                *f = m.failure;
                r = f->error > 0 ? -f->error : -EIO;
                break;
        case CONTROL_ENTER:
        case CONTROL_GO:
        case CONTROL_NETWORK:
        default:
                r = failure_set(f, STAGE_PROCESS, EBADMSG, "its message");
        }
        for (size_t i = 0; i < n_fds; i++)
                safe_close(fds[i]);
        return r;
}

/* The namespace has no other way out, so this closes it. */
static void network_gone(Supervisor *s) {
        log_warning("pasta ended: this run has no network any more");
        s->result->network_ended = true;
}

static void handle_signals(Supervisor *s) {
        struct signalfd_siginfo info;

        while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
                /* What the terminal sends goes to the payload as well, being in the same process group. */
                if (info.ssi_signo == SIGCHLD && pasta_ended(&s->pasta))
                        network_gone(s);
                if (info.ssi_signo == SIGCHLD || info.ssi_code == SI_KERNEL)
                        continue;
                (void) kill(s->child, (int) info.ssi_signo);
        }
}

void supervisor_abandon(Supervisor *s) {
        (void) kill(s->child, SIGKILL);
        while (waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
                ;
        s->child = -ESRCH;
}

int supervise(Supervisor *s, Failure *f) {
        struct pollfd polls[] = {
                {.fd = s->control, .events = POLLIN}, {.fd = s->signals, .events = POLLIN}, {.fd = -EBADF, .events = POLLIN}};
        Observer *o = s->options->observer;
        int r = 0;

        while (r == 0) {
                polls[2].fd = o ? o->listener : -EBADF;
                if (poll(polls, ELEMENTSOF(polls), -1) < 0) {
                        if (errno != EINTR)
                                r = failure_set(f, STAGE_PROCESS, errno, "poll");
                        continue;
                }
                if (polls[1].revents)
                        handle_signals(s);
                if (polls[2].revents & POLLIN)
                        o->serve(o);
                else if (polls[2].revents)
                        o->listener = safe_close(o->listener); /* nobody is left who could call */
                if (polls[0].revents)
                        r = handle_control(s, f);
        }
        if (s->child > 0) {
                if (r < 0)
                        supervisor_abandon(s);
                while (s->child > 0 && waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        return r < 0 ? r : 0;
}
