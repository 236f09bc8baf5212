/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "launch/children.h"
#include "launch/limits.h"
#include "launch/programs.h"

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
        sd_event_source *channel_io, *end, *timeout;
};

static Session *session_free(Session *s) {
        sd_event_source_disable_unref(s->channel_io);
        sd_event_source_disable_unref(s->end);
        sd_event_source_disable_unref(s->timeout);
        safe_close(s->channel);
        safe_close(s->pidfd);
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
        *s = (Session){.launcher = l, .id = strdup(id), .pidfd = -EBADF, .channel = -EBADF, .grace_usec = 10 * USEC_PER_SEC};
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
        if (problem) {
                launcher_reply(s->launcher, s->ticket, -ECANCELED, problem);
                return;
        }
        launcher_open_reply(&w, "launched", s->ticket);
        json_add_u64(&w, "pid", (uint64_t) s->pid);
        launcher_send_reply(s->launcher, s->ticket, &w);
}

static int on_shim_ended(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata) {
        Session *s = userdata;
        unsigned status = (unsigned) info->si_status + (info->si_code == CLD_EXITED ? 0U : 128U);

        if (s->running)
                tell_exited(s, &status);
        else
                reply_once(s, "the shim ended before it listened; errandd's log has its reason");
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

        reply_once(s, "the shim did not listen in time and was ended");
        (void) session_signal(s, SIGKILL);
        return 0;
}

static int on_channel(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        _cleanup_(message_freep) Message *m = NULL;
        const char *text = NULL;
        Session *s = userdata;

        int r = message_receive(s->channel, &m, NULL);
        if (r == -EAGAIN)
                return 0;
        s->channel_io = sd_event_source_disable_unref(s->channel_io);
        s->channel = safe_close(s->channel);
        if (r == -ECONNRESET)
                return 0; /* its end comes next, or the time is up */
        s->timeout = sd_event_source_disable_unref(s->timeout);
        if (r >= 0 && streq(message_type(m), "ready")) {
                s->running = true;
                reply_once(s, NULL);
        } else if (r >= 0 && json_get_string(message_object(m), "text", &text) >= 0)
                reply_once(s, text);
        else
                reply_once(s, "the shim's answer is not understood");
        return 0;
}

/* ---- starting one ---- */

typedef struct Start {
        char **argv;
        int keep[_LAUNCH_FD_MAX + 3];
        size_t n_keep;
} Start;

_printf_(2, 3) static int add(Start *s, const char *format, ...) {
        char *text = NULL;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        va_end(ap);
        return strv_consume(&s->argv, text);
}

static int add_option(Start *s, const char *option, const char *value) {
        if (!value)
                return 0;
        int r = add(s, "%s", option);
        return r < 0 ? r : add(s, "%s", value);
}

static int add_fd(Start *s, const char *name, int fd) {
        if (fd < 0)
                return 0;
        s->keep[s->n_keep++] = fd;
        int r = add(s, "--fd");
        return r < 0 ? r : add(s, "%s=%d", name, fd);
}

/* The names of options and descriptors are the shim's. */
static int build_arguments(const Launcher *l, const LaunchPlan *p, int channel, Start *s) {
        int r = add(s, "errand-shim");

        if (r >= 0)
                r = add_option(s, "--session", p->session);
        if (r >= 0)
                r = add_option(s, "--socket", p->socket);
        if (r >= 0)
                r = add_option(s, "--home", p->home);
        if (r >= 0)
                r = add(s, "--errandd-uid=%u", l->errandd_uid);
        if (r >= 0)
                r = add(s, "--grace-ms=%u", p->grace_ms);
        if (r >= 0 && p->file_max > 0)
                r = add(s, "--file-max=%llu", (unsigned long long) p->file_max);
        if (r >= 0)
                r = add_option(s, "--broker-socket", p->broker_socket);
        if (r >= 0)
                r = add_option(s, "--listen", p->listen);
        if (r >= 0 && p->interactive)
                r = add(s, "--interactive");
        if (r >= 0 && p->rows > 0 && p->columns > 0) {
                r = add(s, "--rows=%u", p->rows);
                if (r >= 0)
                        r = add(s, "--columns=%u", p->columns);
        }
        if (r >= 0 && p->strict)
                r = add(s, "--strict");
        for (char **g = p->accept_gaps; g && *g && r >= 0; g++)
                r = add_option(s, "--accept-gap", *g);
        if (r >= 0)
                r = add_fd(s, "launcher", channel);
        if (r >= 0)
                r = add_fd(s, "bailey", l->bailey);
        for (LaunchFd i = 0; i < _LAUNCH_FD_MAX && r >= 0; i++)
                r = add_fd(s, launch_fd_to_string(i), p->fds[i]);
        if (r >= 0)
                r = add(s, "--");
        if (r >= 0)
                r = strv_extend_list(&s->argv, p->command);
        s->keep[s->n_keep++] = l->shim;
        return r;
}

static int fork_shim(Session *s, const LaunchPlan *plan) {
        Launcher *l = s->launcher;
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY), theirs = -EBADF;
        int pair[2];
        Start start = {};

        if (null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        s->channel = pair[0];
        theirs = pair[1];
        int r = fd_nonblock(s->channel, true);
        if (r >= 0)
                r = build_arguments(l, plan, theirs, &start);
        _cleanup_strv_free_ char **argv = start.argv;
        if (r < 0)
                return r;

        s->pid = fork();
        if (s->pid < 0)
                return -errno;
        if (s->pid == 0)
                program_execute(l->shim, argv, (const int[]){null, null, STDERR_FILENO}, start.keep, start.n_keep);
        s->own = true;
        return 0;
}

static int watch_shim(Session *s) {
        sd_event *event = s->launcher->event;

        s->pidfd = pidfd_open(s->pid, 0);
        int r = s->pidfd < 0 ? -errno : 0;
        if (r >= 0)
                r = sd_event_add_io(event, &s->channel_io, s->channel, EPOLLIN, on_channel, s);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &s->timeout, CLOCK_MONOTONIC, READY_USEC, 1, on_ready_timeout, s);
        if (r >= 0)
                r = sd_event_add_child(event, &s->end, s->pid, WEXITED, on_shim_ended, s);
        if (r >= 0) /* what it said before its end is heard before its end */
                r = sd_event_source_set_priority(s->end, SD_EVENT_PRIORITY_IDLE);
        return r;
}

int session_launch(Launcher *l, const LaunchPlan *plan, Ticket ticket, char **ret_problem) {
        Session *s;

        if (session_find(l, plan->session, plan->socket, &s) >= 0) {
                *ret_problem = strdup("the session has a shim already");
                return -EEXIST;
        }
        if (l->n_sessions >= SESSIONS_MAX)
                return -EMFILE;
        s = session_new(l, plan->session);
        if (!s)
                return -ENOMEM;
        s->ticket = ticket;
        s->grace_usec = plan->grace_ms * USEC_PER_MSEC;
        int r = fork_shim(s, plan);
        if (r >= 0)
                r = watch_shim(s);
        if (r < 0) {
                if (s->own) {
                        (void) kill(s->pid, SIGKILL);
                        (void) waitpid(s->pid, NULL, 0);
                }
                session_free(s);
                return r;
        }
        session_add(s);
        return 0;
}

/* ---- finding one ---- */

/* The process that listens at `path`, of this account. */
static int ask_listener(const char *path, pid_t *ret) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *slash = strrchr(path, '/');
        struct ucred peer;
        socklen_t size = sizeof(peer);

        _cleanup_free_ char *parent = slash ? strndup(path, (size_t) (slash - path) + 1) : NULL;
        _cleanup_close_ int directory = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (directory < 0 || fd < 0)
                return -ENOENT;
        if ((size_t) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory, slash + 1) >=
            sizeof(address.sun_path))
                return -ENAMETOOLONG;
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -ENOENT;
        if (peer.uid != getuid() || peer.pid <= 0)
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

int session_signal(const Session *s, int signal) {
        return pidfd_send_signal(s->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

/* ---- the end ---- */

static int on_last_wait(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Launcher *l = userdata;

        for (Session *s = l->sessions; s; s = s->next) {
                log_warning("The shim of session %s did not end when asked and is killed", s->id);
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

/* ---- helpers ---- */

typedef struct Helper {
        Launcher *launcher;
        Ticket ticket;
        sd_event_source *end;
} Helper;

static int on_helper_ended(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata) {
        Helper *h = userdata;
        int error = info->si_code == CLD_EXITED ? -info->si_status : -EIO;

        h->launcher->n_helpers--;
        launcher_reply(h->launcher, h->ticket, error, NULL);
        sd_event_source_disable_unref(h->end);
        free(h);
        return 0;
}

int helper_start(Launcher *l, Ticket ticket, int (*work)(int fd), int fd) {
        if (l->n_helpers >= HELPERS_MAX)
                return -EBUSY;
        Helper *h = calloc(1, sizeof(Helper));
        if (!h)
                return -ENOMEM;
        *h = (Helper){.launcher = l, .ticket = ticket};
        pid_t pid = fork();
        if (pid == 0) {
                /* Nothing else: errandd shall see it at once when the launcher goes. */
                int r = fd_close_all_except(3, &fd, 1);
                if (r >= 0)
                        r = work(fd);
                _exit(r < 0 ? MIN(-r, 255) : 0);
        }
        int r = pid < 0 ? -errno : sd_event_add_child(l->event, &h->end, pid, WEXITED, on_helper_ended, h);
        if (r < 0) {
                if (pid > 0) {
                        (void) kill(pid, SIGKILL);
                        (void) waitpid(pid, NULL, 0);
                }
                free(h);
                return r;
        }
        l->n_helpers++;
        return 0;
}
