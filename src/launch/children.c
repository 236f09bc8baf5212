/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "launch/children.h"
#include "launch/limits.h"
#include "launch/peer.h"
#include "launch/scope.h"
#include "launch/shim-ahead.h"
#include "launch/shim-start.h"
#include "shared/event-child.h"

/* The channel to a shim of ours: {"type":"ready"} when the session's first process is on its way, or {"type":"error","text"}. With a scope
 * {"type":"waiting","pid","fds":["pidfd"]} comes before, and is answered with {"type":"release"} or {"type":"abort","text"}; but not where the shim was
 * told with the plan that the scope of the process that it forked ahead is made. */
struct Session {
        Launcher *launcher;
        Session *next;
        char *id;
        pid_t pid;
        int pidfd;
        bool own;     /* a child of ours: its status will be known */
        bool running; /* it said that it listens */
        bool replied;
        Ticket ticket;
        usec_t grace_usec;
        int channel;  /* until it said so */
        LaunchPlan *launch; /* its scope until that is being made, its fds until the shim has them; NULL: it was found */
        int ahead;    /* where a shim that was started ahead says that it took the plan; -EBADF: it did, or was not */
        bool signaled; /* what goes now is not started again */
        Scope *scope;
        int first;    /* pidfd of the process that waits for it */
        pid_t first_ahead; /* which that is, of a scope that was begun before the session; 0: of none */
        bool made_ahead;   /* the scope is, and the process not let go */
        bool told_made;    /* the shim was told so with the plan, and lets it go by itself */
        char *problem; /* why it has to go: told when it has gone */
        bool stopping_told;
        sd_event_source *channel_io, *end, *timeout;
};

static Session *session_free(Session *s) {
        sd_event_source_disable_unref(s->channel_io);
        sd_event_source_disable_unref(s->end);
        sd_event_source_disable_unref(s->timeout);
        safe_close(s->channel);
        safe_close(s->pidfd);
        safe_close(s->first);
        safe_close(s->ahead);
        launch_plan_free(s->launch);
        scope_free(s->scope);
        free(s->problem);
        free(s->id);
        return mfree(s);
}

static void session_forget(Session *s) {
        Launcher *l = s->launcher;

        for (Session **p = &l->sessions; *p; p = &(*p)->next)
                if (*p == s) {
                        *p = s->next;
                        break;
                }
        l->n_sessions--;
        session_free(s);
        if (l->ending && !l->sessions)
                (void) sd_event_exit(l->event, 0);
}

static Session *session_new(Launcher *l, const char *id) {
        Session *s = calloc(1, sizeof(Session));

        if (!s)
                return NULL;
        *s = (Session){.launcher = l, .id = strdup(id), .pidfd = -EBADF, .channel = -EBADF, .ahead = -EBADF, .first = -EBADF,
                       .grace_usec = 10 * USEC_PER_SEC};
        return s->id ? s : session_free(s);
}

static void session_add(Session *s) {
        s->next = s->launcher->sessions;
        s->launcher->sessions = s;
        s->launcher->n_sessions++;
}

/* A status is the shim's own: 0 when the session's last line is on disk, else the session is lost. */
static void tell_exited(const Session *s, const unsigned *status) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (s->launcher->ending)
                return;
        message_open(&w, "shim-exited");
        json_add_string(&w, "session", s->id);
        if (status)
                json_add_u64(&w, "status", *status);
        else /* it was no child of ours */
                json_add_null(&w, "status");
        launcher_send(s->launcher, &w);
}

static void reply_once(Session *s, const char *problem) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (s->replied)
                return;
        s->replied = true;
        shim_ahead_later(s->launcher);
        if (problem) {
                launcher_reply(s->launcher, s->ticket, -ECANCELED, problem);
                return;
        }
        launcher_open_reply(&w, "launched", s->ticket);
        json_add_u64(&w, "pid", (uint64_t) s->pid);
        json_add_string(&w, "scope", s->scope ? scope_unit(s->scope) : NULL);
        json_open_array(&w, "notApplied");
        for (ScopeLimit i = 0; i < _SCOPE_LIMIT_MAX && s->scope; i++)
                if (scope_limit_missing(s->scope, i))
                        json_add_string(&w, NULL, scope_limit_name(i)->name);
        json_close_array(&w);
        launcher_send_reply(s->launcher, s->ticket, &w);
}

static int start_again(Session *s);

static int on_shim_ended(sd_event_source *source, const siginfo_t *info, void *userdata) {
        Session *s = userdata;
        unsigned status = (unsigned) info->si_status + (info->si_code == CLD_EXITED ? 0U : 128U);

        event_child_ended(source);
        if (start_again(s) > 0)
                return 0;
        if (s->running)
                tell_exited(s, &status);
        else
                reply_once(s, s->problem ?: "the shim ended before it listened; errandd's log has its reason");
        /* It goes with its last process; a shim that was killed may have left some. */
        if (s->scope && status != 0)
                scope_stop(s->scope);
        session_forget(s);
        return 0;
}

static int on_found_ended(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        Session *s = userdata;

        tell_exited(s, NULL);
        session_forget(s);
        return 0;
}

static int on_ready_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Session *s = userdata;

        reply_once(s, s->problem ?: "the shim did not listen in time and was ended");
        (void) session_signal(s, SIGKILL);
        return 0;
}

static int allow_time(Session *s) {
        s->timeout = sd_event_source_disable_unref(s->timeout);
        return sd_event_add_time_relative(s->launcher->event, &s->timeout, CLOCK_MONOTONIC, READY_USEC, 1, on_ready_timeout, s);
}

/* ---- its scope ---- */

/* Nothing runs, and that is told when the shim has gone. */
static void abort_launch(Session *s, const char *text) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        s->problem = strdup(text);
        message_open(&w, "abort");
        json_add_string(&w, "text", text);
        if (message_send(s->channel, &w, NULL, 0) < 0 || allow_time(s) < 0)
                (void) session_signal(s, SIGKILL); /* what waits for it goes with it */
}

static void on_scope_made(int error, const char *text, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        Session *s = userdata;

        s->first = safe_close(s->first);
        if (error < 0)
                s->scope = scope_free(s->scope);
        if (s->first_ahead > 0) { /* the shim has not said yet which process it uses: then that is let go, or another scope made */
                s->made_ahead = error >= 0;
                return;
        }
        if (error < 0) {
                abort_launch(s, text);
                return;
        }
        message_open(&w, "release");
        int r = message_send(s->channel, &w, NULL, 0);
        if (r >= 0)
                r = allow_time(s);
        if (r < 0)
                (void) session_signal(s, SIGKILL);
}

/* Begun before the session, around a process that is not used. */
static void drop_scope(Session *s) {
        if (s->made_ahead)
                scope_stop(s->scope);
        s->scope = scope_free(s->scope);
        s->first = safe_close(s->first);
        s->first_ahead = 0;
        s->made_ahead = s->told_made = false;
}

static void take_scope(Session *s) {
        s->first_ahead = 0;
        s->made_ahead = s->told_made = false;
        s->launch->scope = scope_plan_free(s->launch->scope);
}

/* True: it was begun before the session, and around this process. */
static bool use_scope(Session *s, pid_t pid) {
        bool made = s->made_ahead;

        if (s->first_ahead != pid)
                return false;
        take_scope(s);
        s->timeout = sd_event_source_disable_unref(s->timeout);
        if (made)
                on_scope_made(0, NULL, s);
        return true;
}

static void make_scope(Session *s, Message *m) {
        _cleanup_free_ char *problem = NULL;
        uint64_t pid = 0;

        int r = json_get_u64(message_object(m), "pid", INT32_MAX, &pid);
        if (r >= 0 && s->scope && use_scope(s, (pid_t) pid))
                return;
        drop_scope(s);
        s->first = message_take_fd(m, "pidfd");
        if (s->first < 0)
                r = -EBADMSG;
        if (r >= 0)
                r = scope_make(s->launcher->manager, s->launch->scope, (pid_t) pid, s->first, on_scope_made, s,
                               &s->scope, &problem);
        if (r < 0) {
                abort_launch(s, problem ?: "the session's scope cannot be asked for");
                return;
        }
        TAKE_PTR(s->launch->scope);
        s->timeout = sd_event_source_disable_unref(s->timeout); /* it has one of its own */
}

static int on_channel(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        _cleanup_(message_freep) Message *m = NULL;
        const char *text = NULL;
        Session *s = userdata;

        int r = message_receive(s->channel, &m, NULL);
        if (r == -EAGAIN)
                return 0;
        if (r >= 0) { /* whatever it is: it has the plan */
                s->ahead = safe_close(s->ahead);
                launch_plan_close(s->launch);
        }
        if (r >= 0 && s->launch->scope && streq(message_type(m), "waiting")) {
                make_scope(s, m);
                return 0;
        }
        s->channel_io = sd_event_source_disable_unref(s->channel_io);
        s->channel = safe_close(s->channel);
        if (r == -ECONNRESET)
                return 0; /* its end comes next, or the time is up */
        if (r >= 0 && s->told_made && streq(message_type(m), "ready")) {
                take_scope(s);
                s->first = safe_close(s->first);
        }
        if (r >= 0 && !s->launch->scope && streq(message_type(m), "ready")) {
                s->timeout = sd_event_source_disable_unref(s->timeout);
                s->running = true;
                reply_once(s, NULL);
                return 0;
        }
        /* Told when it has gone: then errandd can start the session again. */
        if (r < 0 || json_get_string(message_object(m), "text", &text) < 0)
                text = "the shim's answer is not understood";
        if (!s->problem)
                s->problem = strdup(text);
        if (allow_time(s) < 0)
                (void) session_signal(s, SIGKILL);
        return 0;
}

void session_stopping(Launcher *l, const char *unit) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        size_t size;

        const char *id = scope_unit_session(unit, &size);
        for (Session *s = id ? l->sessions : NULL; s; s = s->next) {
                if (strlen(s->id) != size || strncmp(s->id, id, size) != 0 || !s->running || s->stopping_told)
                        continue;
                s->stopping_told = true;
                message_open(&w, "scope-ended");
                json_add_string(&w, "session", s->id);
                launcher_send(l, &w);
                return;
        }
}

/* ---- starting one ---- */

static int watch_shim(Session *s) {
        sd_event *event = s->launcher->event;

        s->pidfd = pidfd_open(s->pid, 0);
        int r = s->pidfd < 0 ? -errno : 0;
        if (r >= 0)
                r = sd_event_add_io(event, &s->channel_io, s->channel, EPOLLIN, on_channel, s);
        if (r >= 0)
                r = allow_time(s);
        if (r >= 0)
                r = event_add_child_last(event, &s->end, s->pid, on_shim_ended, s);
        return r;
}

/* A child that nothing depends on any more. */
static void end_shim(Session *s) {
        (void) kill(s->pid, SIGKILL);
        (void) waitpid(s->pid, NULL, 0);
        s->own = false;
}

static int start_own(Session *s) {
        int r = shim_start(s->launcher, s->launch, &s->pid, &s->channel);

        launch_plan_close(s->launch);
        s->own = r >= 0;
        return r;
}

/* One that was started ahead, where there is one. */
static int start_shim(Session *s) {
        ShimTaken taken;

        if (shim_ahead_take(s->launcher, s->launch->scope, &taken) < 0)
                return start_own(s);
        s->own = true;
        s->pid = taken.pid;
        s->ahead = taken.fd;
        s->scope = taken.scope;
        s->first = taken.first_fd;
        s->first_ahead = taken.first;
        s->made_ahead = taken.made;
        if (s->scope)
                scope_hand_over(s->scope, on_scope_made, s);
        int r = shim_hand_over(s->launcher, s->launch, s->ahead, s->made_ahead ? s->first_ahead : 0, &s->channel);
        s->told_made = r >= 0 && s->made_ahead;
        if (r >= 0)
                return 0;
        log_session_info(s->id, "the shim that was started ahead cannot be used, and another is started: %s", strerror(-r));
        s->ahead = safe_close(s->ahead);
        drop_scope(s);
        end_shim(s);
        return start_own(s);
}

/* Where the shim that was started ahead went before it took the plan: nothing has happened yet. 1: another one was started. */
static int start_again(Session *s) {
        _cleanup_(message_freep) Message *m = NULL;

        if (s->ahead < 0 || s->signaled || s->replied || message_receive(s->ahead, &m, NULL) >= 0)
                return 0;
        log_session_info(s->id, "the shim that was started ahead has ended, and another is started");
        s->ahead = safe_close(s->ahead);
        s->channel_io = sd_event_source_disable_unref(s->channel_io);
        s->end = sd_event_source_disable_unref(s->end);
        s->channel = safe_close(s->channel);
        s->pidfd = safe_close(s->pidfd);
        drop_scope(s);
        int r = start_own(s);
        if (r >= 0)
                r = watch_shim(s);
        if (r >= 0)
                return 1;
        if (s->own)
                end_shim(s);
        s->problem = strdup("the shim that was started ahead has ended, and no other can be started; errandd's log has the reason");
        return log_session_error_errno(r, s->id, "no shim can be started: %m");
}

int session_launch(Launcher *l, LaunchPlan *plan, Ticket ticket, char **ret_problem) {
        _cleanup_(launch_plan_freep) LaunchPlan *own = plan;
        sd_bus *bus;
        Session *s;

        if (session_find(l, plan->session, plan->socket, &s) >= 0) {
                *ret_problem = strdup("the session has a shim already: an earlier run of it is still being ended; try again in a moment");
                return -EEXIST;
        }
        if (l->n_sessions >= SESSIONS_MAX)
                return -EMFILE;
        int r = plan->scope ? user_manager_connect(l->manager, &bus, ret_problem) : 0;
        if (r < 0)
                return r;
        s = session_new(l, plan->session);
        if (!s)
                return -ENOMEM;
        s->ticket = ticket;
        s->grace_usec = plan->grace_ms * USEC_PER_MSEC;
        s->launch = TAKE_PTR(own);
        r = start_shim(s);
        if (r >= 0)
                r = watch_shim(s);
        if (r < 0) {
                if (s->own)
                        end_shim(s);
                session_free(s);
                return r;
        }
        session_add(s);
        return 0;
}

/* ---- finding one ---- */

/* The process that listens at `path`, of this account. */
static int ask_listener(const char *path, pid_t *ret) {
        struct ucred peer;

        _cleanup_close_ int fd = peer_connect(path, SOCK_SEQPACKET, &peer);
        if (fd < 0 || peer.uid != getuid() || peer.pid <= 0)
                return -ENOENT;
        *ret = peer.pid;
        return 0;
}

/* errandd watches a shim too and may know of its end before this loop came to it: what it asks for then is not refused for a shim that is
 * dead. Its end is told first, as it would have been. True: there is none any more. */
static bool session_settle(Session *s) {
        siginfo_t info = {};

        if (!s->running)
                return false; /* its first word may be on the way still */
        if (s->own) {
                if (waitid(P_PIDFD, (id_t) s->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
                        return false;
                (void) on_shim_ended(NULL, &info, s);
                return true;
        }
        if (poll(&(struct pollfd){.fd = s->pidfd, .events = POLLIN}, 1, 0) <= 0)
                return false;
        (void) on_found_ended(NULL, s->pidfd, 0, s);
        return true;
}

int session_find(Launcher *l, const char *id, const char *socket, Session **ret) {
        _cleanup_close_ int pidfd = -EBADF;
        pid_t pid, again;

        for (Session *s = l->sessions; s; s = s->next)
                if (streq(s->id, id)) {
                        if (session_settle(s))
                                break;
                        *ret = s;
                        return 0;
                }
        if (!socket || l->n_sessions >= SESSIONS_MAX || ask_listener(socket, &pid) < 0)
                return -ENOENT;
        /* It still listens after the descriptor was made, so the descriptor is the listener's and not a successor's of its pid. */
        pidfd = pidfd_open(pid, 0);
        if (pidfd < 0 || ask_listener(socket, &again) < 0 || again != pid)
                return -ENOENT;
        Session *s = session_new(l, id);
        if (!s)
                return -ENOMEM;
        s->pid = pid;
        s->pidfd = TAKE_FD(pidfd);
        s->running = s->replied = true;
        int r = sd_event_add_io(l->event, &s->end, s->pidfd, EPOLLIN, on_found_ended, s);
        if (r < 0) {
                session_free(s);
                return r;
        }
        session_add(s);
        *ret = s;
        return 0;
}

pid_t session_pid(const Session *s) {
        return s->pid;
}

int session_signal(Session *s, int signal) {
        s->signaled = true;
        return pidfd_send_signal(s->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

/* ---- the end ---- */

static int on_last_wait(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Launcher *l = userdata;

        for (Session *s = l->sessions; s; s = s->next) {
                log_session_warning(s->id, "its shim did not end when asked and is killed");
                (void) session_signal(s, SIGKILL);
        }
        return sd_event_exit(l->event, EXIT_FAILURE);
}

void sessions_end(Launcher *l) {
        usec_t longest = 0;

        for (Session *s = l->sessions; s; s = s->next) {
                (void) session_signal(s, SIGTERM);
                longest = MAX(longest, s->grace_usec);
        }
        if (!l->sessions || sd_event_add_time_relative(l->event, NULL, CLOCK_MONOTONIC, longest + LAST_WAIT_USEC, 1, on_last_wait, l) < 0)
                (void) sd_event_exit(l->event, 0);
}

void sessions_free(Launcher *l) {
        while (l->sessions) {
                Session *s = l->sessions;
                l->sessions = s->next;
                session_free(s);
        }
        l->n_sessions = 0;
}
