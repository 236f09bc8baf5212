/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The order of a session's end. bailey is gone (SIGCHLD); whatever is left of its sandbox is ended by the descriptor of its first process,
 * and that is awaited; then bailey's messages, the terminal or the pipes are read to their ends, so that the transcript is whole; then the
 * last line of the events is written and synced; then clients get what they have not been sent; then the shim goes. */

#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "shared/event-child.h"
#include "shim/gate.h"
#include "shim/home.h"
#include "shim/outcome.h"
#include "shim/report.h"
#include "shim/shim.h"

static const char *const states[_SHIM_STATE_MAX] = {
        [SHIM_STARTING] = "starting",
        [SHIM_RUNNING] = "running",
        [SHIM_EXITED] = "exited",
};

const char *shim_state_to_string(ShimState state) {
        return state >= 0 && state < _SHIM_STATE_MAX ? states[state] : NULL;
}

static int signal_pid1(const Shim *s, int signal) {
        if (s->pid1_fd < 0)
                return -ESRCH;
        return pidfd_send_signal(s->pid1_fd, signal, NULL, 0) < 0 ? -errno : 0;
}

/* All of the session's processes, by what names them best. bailey itself is left to say how it went. */
static int kill_payload(const Shim *s) {
        return group_kill(s->group, "payload") >= 0 ? 0 : signal_pid1(s, SIGKILL);
}

/* ---- the end ---- */

static int exit_now(Shim *s) {
        return sd_event_exit(s->event, s->lost ? EXIT_FAILURE : 0);
}

static int on_linger(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        return exit_now(userdata);
}

/* Whether clients are still owed something. */
static int on_post(_unused_ sd_event_source *source, void *userdata) {
        Shim *s = userdata;

        if (s->state != SHIM_EXITED || control_has_pending(s->control))
                return 0;
        if (!s->terminal || (terminal_clients_seen(s->terminal) > 0 && !terminal_has_pending(s->terminal)))
                return exit_now(s);
        return 0;
}

static void end(Shim *s) {
        if (s->state == SHIM_EXITED)
                return;
        if (group_oom_kills(s->group) > 0)
                events_log(s->events, "its memory was used up: the kernel ended some of its processes");
        outcome_settle(s);
        (void) gate_tell(s, "error", s->exit.text);
        if (s->n_log_lines > LOG_LINES_MAX)
                events_log(s->events, "more of bailey's messages were left out");
        if (s->conversation)
                conversation_finish(s->conversation);
        for (size_t i = 0; i < ELEMENTSOF(s->outputs); i++)
                if (s->outputs[i].stream)
                        transcript_finish(s->outputs[i].stream);
        if (s->terminal_stream)
                transcript_finish(s->terminal_stream);
        s->lost = events_exited(s->events, &s->exit) < 0;
        s->state = SHIM_EXITED;
        if (s->control)
                control_tell_state(s->control);

        /* on_post() goes as soon as nobody is owed anything. */
        bool owed = s->terminal || (s->control && control_has_pending(s->control));
        if (!owed || sd_event_add_time_relative(s->event, &s->linger, CLOCK_MONOTONIC, LINGER_USEC, 1, on_linger, s) < 0)
                (void) exit_now(s);
}

static int on_drain(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Shim *s = userdata;

        if (s->state != SHIM_EXITED)
                log_warning(s->pid1_io ? "The first process of the session's sandbox cannot be ended"
                                       : "Something holds the output of the ended session open; what it writes is not kept");
        end(s);
        return 0;
}

void shim_check_end(Shim *s) {
        bool open = s->pid1_io || s->child.log >= 0 || s->outputs[0].fd >= 0 || s->outputs[1].fd >= 0 || (s->terminal && !s->terminal_ended) ||
                    (s->conversation && conversation_is_open(s->conversation));

        if (s->state == SHIM_EXITED || !s->child_ended)
                return;
        if (!open)
                end(s);
        else if (!s->drain)
                (void) sd_event_add_time_relative(s->event, &s->drain, CLOCK_MONOTONIC, DRAIN_USEC, 1, on_drain, s);
}

static void on_terminal_end(void *userdata) {
        Shim *s = userdata;

        s->terminal_ended = true;
        shim_check_end(s);
}

static void on_conversation_end(void *userdata) {
        shim_check_end(userdata);
}

/* Its agent is of no use any more. */
static void on_conversation_failed(const char *text, void *userdata) {
        Shim *s = userdata;

        if (s->stopping) /* for another reason */
                return;
        log_warning("The conversation of session %s has failed: %s", s->options->session, text);
        free(s->failure);
        s->failure = strdup(text);
        shim_note(s, text);
        (void) shim_stop(s, s->options->grace_usec);
}

static void on_update(JsonWriter *w, bool keep, void *userdata) {
        Shim *s = userdata;

        if (s->control)
                control_tell_update(s->control, w, keep);
}

static int on_output(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        char chunk[CHUNK_SIZE];
        Output *o = userdata;

        ssize_t n = read(o->fd, chunk, sizeof(chunk));
        if (n > 0)
                transcript_write(o->stream, chunk, (size_t) n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
                o->io = sd_event_source_disable_unref(o->io);
                o->fd = safe_close(o->fd);
                shim_check_end(o->shim);
        }
        return 0;
}

static int on_pid1(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        Shim *s = userdata;

        s->pid1_io = sd_event_source_disable_unref(s->pid1_io);
        shim_check_end(s);
        return 0;
}

static int on_child(sd_event_source *source, const siginfo_t *info, void *userdata) {
        Shim *s = userdata;

        event_child_ended(source);
        s->child_ended = true;
        s->child_code = info->si_code;
        s->child_status = info->si_status;
        s->grace = sd_event_source_disable_unref(s->grace);
        /* It ends with bailey anyway; this is for the case that it cannot. */
        (void) signal_pid1(s, SIGKILL);
        (void) group_kill(s->group, ".");
        if (s->terminal)
                terminal_finish(s->terminal);
        shim_check_end(s);
        return 0;
}

/* ---- while it runs ---- */

void shim_started(Shim *s, const Started *started, int pidfd) {
        s->pid1 = (pid_t) started->pid;
        s->pid1_fd = pidfd;
        if (pidfd >= 0) {
                int r = sd_event_add_io(s->event, &s->pid1_io, pidfd, EPOLLIN, on_pid1, s);
                if (r < 0)
                        log_warning_errno(r, "The sandbox's first process cannot be watched: %m");
        }
        s->state = SHIM_RUNNING;
        events_started(s->events, started);
        control_tell_state(s->control);
        if (s->conversation)
                conversation_begin(s->conversation);
}

int shim_signal(Shim *s, int signal) {
        if (s->child_ended)
                return -ESRCH;
        if (signal == SIGKILL && s->pid1_fd >= 0)
                return kill_payload(s);
        return kill(s->child.pid, signal) < 0 ? -errno : 0;
}

static int on_grace(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Shim *s = userdata;

        s->killed = true;
        if (kill_payload(s) < 0)
                (void) kill(s->child.pid, SIGKILL);
        (void) kill(s->child.pid, SIGCONT);
        return 0;
}

void shim_note(Shim *s, const char *text) {
        _cleanup_free_ char *clean = string_escape_control(text);

        if (s->transcript && clean)
                transcript_note(s->transcript, clean);
}

int shim_stop(Shim *s, usec_t grace_usec) {
        usec_t at = now_monotonic() + grace_usec;
        int r;

        if (s->child_ended)
                return 0;
        if (s->child.gate >= 0) { /* it has done nothing yet that it would have to put in order */
                s->stopping = true;
                return kill(s->child.pid, SIGKILL) < 0 ? -errno : 0;
        }
        if (!s->stopping) {
                /* One that was stopped by job control has to run to hear of it. */
                if (kill(s->child.pid, SIGTERM) < 0 || kill(s->child.pid, SIGCONT) < 0)
                        return -errno;
                s->stopping = true;
                r = sd_event_add_time(s->event, &s->grace, CLOCK_MONOTONIC, at, 1, on_grace, s);
        } else if (at < s->kill_at)
                r = sd_event_source_set_time(s->grace, at);
        else
                return 0;
        s->kill_at = at;
        return r;
}

static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Shim *s = userdata;

        if (info->ssi_signo == SIGTERM)
                (void) shim_stop(s, s->options->grace_usec);
        else
                (void) shim_signal(s, (int) info->ssi_signo);
        return 0;
}

/* ---- the beginning ---- */

static int take_signals(Shim *s) {
        static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
        sigset_t set;
        int r = 0;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) sigaddset(&set, signals[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is told as any other that cannot be written */
        for (size_t i = 0; i < ELEMENTSOF(signals) && r >= 0; i++)
                r = sd_event_add_signal(s->event, NULL, signals[i], on_signal, s);
        return r;
}

static int prepare_conversation(Shim *s, const char **ret_what) {
        const ShimOptions *o = s->options;
        char link[40], directory[PATH_MAX];

        *ret_what = "the conversation, whose directory has to have a path in UTF-8";
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fds[SHIM_FD_PROJECT]);
        ssize_t n = readlink(link, directory, sizeof(directory) - 1);
        if (n < 0)
                return -errno;
        directory[n] = 0;
        if (directory[0] != '/' || !utf8_valid(directory))
                return -EINVAL;
        const ConversationOptions options = {.startup_usec = o->startup_ms * USEC_PER_MSEC, .question_usec = o->question_ms * USEC_PER_MSEC,
                                             .abort_usec = o->abort_ms * USEC_PER_MSEC, .directory = directory};
        const ConversationLinks links = {.updates = {.send = on_update, .userdata = s}, .failed = on_conversation_failed,
                                         .ended = on_conversation_end, .userdata = s};
        return conversation_new(s->event, s->secrets, s->transcript, &options, &links, &s->conversation);
}

static int prepare(Shim *s, const char **ret_what) {
        ShimOptions *o = s->options;
        int r;

        *ret_what = "its event loop";
        r = sd_event_new(&s->event);
        if (r >= 0)
                r = take_signals(s);
        if (r >= 0)
                r = sd_event_add_post(s->event, NULL, on_post, s);
        if (r < 0)
                return r;
        *ret_what = "the events";
        r = events_new(TAKE_FD(o->fds[SHIM_FD_EVENTS]), &s->events);
        if (r < 0)
                return r;
        *ret_what = "the list of secrets";
        r = secret_list_read(o->fds[SHIM_FD_SCRUB], &s->secrets);
        o->fds[SHIM_FD_SCRUB] = safe_close(o->fds[SHIM_FD_SCRUB]);
        if (r < 0)
                return r;
        *ret_what = "the transcript";
        r = transcript_new(TAKE_FD(o->fds[SHIM_FD_TRANSCRIPT]), TRANSCRIPT_BYTES_MAX, &s->transcript);
        if (r >= 0 && o->conversation)
                return prepare_conversation(s, ret_what);
        if (r < 0 || !o->interactive)
                return r;
        *ret_what = "the terminal";
        r = transcript_stream_new(s->transcript, s->secrets, &s->terminal_stream);
        if (r >= 0)
                r = terminal_new(s->event, s->terminal_stream, on_terminal_end, s, &s->terminal);
        if (r >= 0)
                r = terminal_resize(s->terminal, o->rows, o->columns);
        if (r >= 0 && o->fds[SHIM_FD_TERMINAL] >= 0)
                r = terminal_add_client(s->terminal, TAKE_FD(o->fds[SHIM_FD_TERMINAL]));
        return r;
}

static int watch_output(Shim *s, size_t which, int fd) {
        Output *o = &s->outputs[which];

        *o = (Output){.shim = s, .fd = fd};
        if (fd < 0)
                return 0;
        int r = transcript_stream_new(s->transcript, s->secrets, &o->stream);
        return r < 0 ? r : sd_event_add_io(s->event, &o->io, fd, EPOLLIN, on_output, o);
}

static int start(Shim *s, const char **ret_what) {
        if (s->options->broker_socket)
                home_prepare(s->options->home);
        int r = child_start(s->options, &s->child, ret_what);
        if (r < 0)
                return r;
        *ret_what = "watching bailey";
        r = event_add_child_last(s->event, &s->child_event, s->child.pid, on_child, s);
        if (r >= 0)
                r = sd_event_add_io(s->event, &s->report_io, s->child.report, EPOLLIN, report_on_report, s);
        if (r >= 0)
                r = sd_event_add_io(s->event, &s->log_io, s->child.log, EPOLLIN, report_on_log, s);
        if (r >= 0 && s->child.console >= 0)
                r = sd_event_add_io(s->event, &s->console_io, s->child.console, EPOLLIN, report_on_console, s);
        if (r >= 0 && s->conversation)
                r = conversation_open(s->conversation, TAKE_FD(s->child.input), TAKE_FD(s->child.output));
        if (r >= 0)
                r = watch_output(s, 0, TAKE_FD(s->child.output));
        if (r >= 0)
                r = watch_output(s, 1, TAKE_FD(s->child.error));
        return r;
}

static int fail(Shim *s, int error, const char *what) {
        _cleanup_free_ char *text = NULL;

        log_error_errno(error, "The session %s cannot be started, %s: %m", s->options->session, what);
        if (asprintf(&text, "the shim cannot set up %s: %s", what, strerror(-error)) < 0)
                text = NULL;
        (void) gate_tell(s, "error", text ?: "the shim is out of memory");
        return error;
}

static void done(Shim *s) {
        s->conversation = conversation_free(s->conversation);
        s->control = control_free(s->control);
        free(s->failure);
        terminal_free(s->terminal);
        sd_event_source *sources[] = {s->launcher_io, s->child_event, s->report_io, s->console_io, s->log_io, s->pid1_io, s->grace, s->drain, s->linger};
        for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                sd_event_source_disable_unref(sources[i]);
        for (size_t i = 0; i < ELEMENTSOF(s->outputs); i++) {
                sd_event_source_disable_unref(s->outputs[i].io);
                safe_close(s->outputs[i].fd);
                transcript_stream_free(s->outputs[i].stream);
        }
        child_done(&s->child);
        group_free(s->group);
        free(s->refused);
        safe_close(s->pid1_fd);
        transcript_stream_free(s->terminal_stream);
        transcript_free(s->transcript);
        events_free(s->events);
        secret_list_free(s->secrets);
        exit_status_done(&s->exit);
        free(s->last_line);
        sd_event_unref(s->event);
        free(s);
}

static void donep(Shim **s) {
        if (*s)
                done(*s);
}

int shim_run(ShimOptions *options) {
        _cleanup_(donep) Shim *s = calloc(1, sizeof(Shim));
        const char *what;

        if (!s)
                return log_oom();
        s->options = options;
        s->child = (Child) CHILD_NONE;
        s->pid1_fd = s->outputs[0].fd = s->outputs[1].fd = -EBADF;

        int r = prepare(s, &what);
        if (r >= 0) {
                what = "its socket";
                r = control_new(s, options->socket, (uid_t) options->errandd_uid, &s->control);
        }
        if (r < 0)
                return fail(s, r, what);
        r = start(s, &what);
        if (r >= 0 && options->scope) {
                what = "its scope";
                /* One that is made already is the launcher's whole word. That this process is in it is looked at here, as always. */
                if (options->ahead_made == s->child.pid)
                        gate_let_go(s);
                else
                        r = gate_ask_for_scope(s);
        }
        if (r < 0) {
                if (s->child.pid > 0)
                        (void) kill(s->child.pid, SIGKILL);
                return fail(s, r, what);
        }
        if (!options->scope)
                gate_tell_ready(s);
        r = sd_event_loop(s->event);
        return r < 0 ? log_error_errno(r, "The session %s is no longer watched: %m", options->session) : s->lost ? -EIO : 0;
}
