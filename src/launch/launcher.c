/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "launch/backend-bailey.h"
#include "launch/children.h"
#include "launch/disk-usage.h"
#include "launch/helper.h"
#include "launch/project.h"
#include "launch/request.h"
#include "launch/shim-ahead.h"
#include "launch/tree.h"
#include "launch/usage.h"
#include "launch/user-manager.h"

/* A request being handled. */
typedef struct Request {
        Launcher *launcher;
        Message *message;
        JsonObject *object;
        Ticket ticket;
} Request;

void launcher_open_reply(JsonWriter *w, const char *type, Ticket ticket) {
        message_open(w, type);
        if (ticket.has_serial)
                json_add_u64(w, "serial", ticket.serial);
}

void launcher_send(Launcher *l, JsonWriter *w) {
        if (l->ending || l->fd < 0)
                return;
        int r = message_send(l->fd, w, NULL, 0);
        if (r < 0)
                log_warning_errno(r, "errandd does not take a message: %m");
}

void launcher_send_reply(Launcher *l, Ticket ticket, JsonWriter *w) {
        if (ticket.connection == l->connection)
                launcher_send(l, w);
}

void launcher_reply(Launcher *l, Ticket ticket, int error, const char *text) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        launcher_open_reply(&w, error < 0 ? "error" : "ok", ticket);
        if (error < 0)
                json_add_string(&w, "text", text ?: strerror(-error));
        launcher_send_reply(l, ticket, &w);
}

static void reply(const Request *q, int error, const char *text) {
        launcher_reply(q->launcher, q->ticket, error, text);
}

static void handle_launch(Request *q) {
        _cleanup_(launch_plan_freep) LaunchPlan *plan = NULL;
        _cleanup_free_ char *problem = NULL;

        int r = launch_plan_parse(q->message, &plan, &problem);
        if (r >= 0 && q->launcher->listener >= 0) /* an errandd that is a service has a mount namespace of its own */
                project_settle(&plan->fds[LAUNCH_FD_PROJECT]);
        if (r >= 0)
                r = session_launch(q->launcher, TAKE_PTR(plan), q->ticket, &problem);
        if (r < 0)
                reply(q, r, problem);
}

/* The session that the request names, or NULL after a reply. */
static Session *named_session(Request *q) {
        const char *id, *socket = NULL;
        Session *s;

        int r = json_get_string(q->object, "shimSocket", &socket);
        if (json_get_string(q->object, "session", &id) < 0 || !session_id_valid(id) || (r < 0 && r != -ENOENT)) {
                reply(q, -EINVAL, "\"session\" is not a session's id, or \"shimSocket\" no path");
                return NULL;
        }
        r = session_find(q->launcher, id, socket, &s);
        if (r >= 0)
                return s;
        reply(q, r, r == -ENOENT ? "there is no shim of that session" : NULL);
        return NULL;
}

/* Which session comes, for its scope to be made before; without a scope: none does. */
static void handle_prepare(Request *q) {
        _cleanup_(scope_plan_freep) ScopePlan *plan = NULL;
        _cleanup_free_ char *problem = NULL;
        JsonObject *scope;
        const char *id;

        int r = json_get_object(q->object, "scope", &scope);
        if (r >= 0)
                r = json_get_string(q->object, "session", &id) < 0 || !session_id_valid(id) ? -EINVAL : scope_plan_parse(scope, id, &plan, &problem);
        if (r < 0 && r != -ENOENT) {
                reply(q, r, problem ?: "a prepare has \"session\" and \"scope\", or neither");
                return;
        }
        shim_ahead_prepare(q->launcher, TAKE_PTR(plan));
        reply(q, 0, NULL);
}

static void handle_stop(Request *q) {
        Session *s = named_session(q);

        if (s)
                reply(q, session_signal(s, SIGTERM), NULL);
}

static void handle_kill(Request *q) {
        uint64_t number;

        if (json_get_u64(q->object, "signal", SIGRTMAX, &number) < 0 || number == 0) {
                reply(q, -EINVAL, "\"signal\" is not the number of a signal");
                return;
        }
        Session *s = named_session(q);
        if (s)
                reply(q, session_signal(s, (int) number), NULL);
}

static void handle_adopt(Request *q) {
        _cleanup_free_ char *problem = NULL;
        const char *scope;
        sd_bus *bus;

        if (!named_session(q))
                return;
        /* To hear when others stop it. */
        if (json_get_string(q->object, "scope", &scope) >= 0 && user_manager_connect(q->launcher->manager, &bus, &problem) < 0)
                log_warning("A stop of %s by others will not be told: %s", scope, problem ?: "out of memory");
        reply(q, 0, NULL);
}

static void handle_usage(Request *q) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        Usage usage;

        const Session *s = named_session(q);
        if (!s)
                return;
        int r = usage_read(session_pid(s), &usage);
        if (r < 0) {
                reply(q, r, NULL);
                return;
        }
        launcher_open_reply(&w, "usage", q->ticket);
        json_add_u64(&w, "memory", usage.memory_bytes);
        json_add_u64(&w, "pids", usage.processes);
        json_add_u64(&w, "cpu", usage.cpu_usec);
        launcher_send_reply(q->launcher, q->ticket, &w);
}

static int run_collect(const int *fds, _unused_ void *result) {
        return tree_empty(fds[0]);
}

static void handle_collect(Request *q) {
        _cleanup_close_ int state = message_take_fd(q->message, "state");
        const char *id;
        Session *s;

        if (json_get_string(q->object, "session", &id) < 0 || !session_id_valid(id) || state < 0) {
                reply(q, -EINVAL, "a collect has the \"session\" and the descriptor \"state\"");
                return;
        }
        if (session_find(q->launcher, id, NULL, &s) >= 0) {
                reply(q, -EBUSY, "a shim of the session is there still; try again in a moment, or stop it first");
                return;
        }
        static const HelperWork work = {.run = run_collect};
        int r = helper_start(q->launcher, q->ticket, &work, &state, 1);
        if (r < 0)
                reply(q, r, NULL);
}

typedef struct Disk {
        DiskUsage state, project;
        /* Of the project's file system, before it was looked at, and what it grew by meanwhile: says what a measure that is not whole does not. */
        uint64_t system, grown;
} Disk;
_Static_assert(sizeof(Disk) <= HELPER_RESULT_MAX, "the result is too large");

static int run_disk(const int *fds, void *result) {
        Disk *d = result;

        disk_usage_prepare();
        d->system = fd_system_used(fds[1]);
        int r = disk_usage_measure(fds[0], &d->state);
        if (r >= 0)
                r = disk_usage_measure(fds[1], &d->project);
        uint64_t after = fd_system_used(fds[1]);
        d->grown = after > d->system ? after - d->system : 0;
        return r;
}

static void add_disk(JsonWriter *w, const void *result) {
        const Disk *d = result;

        json_add_u64(w, "state", d->state.bytes);
        json_add_bool(w, "stateWhole", d->state.whole);
        json_add_u64(w, "project", d->project.bytes);
        json_add_bool(w, "projectWhole", d->project.whole);
        json_add_u64(w, "system", d->system);
        json_add_u64(w, "grown", d->grown);
}

static void handle_disk(Request *q) {
        static const HelperWork work = {.run = run_disk, .type = "disk", .add = add_disk};
        _cleanup_close_ int state = message_take_fd(q->message, "state"), project = message_take_fd(q->message, "project");

        if (state < 0 || project < 0) {
                reply(q, -EINVAL, "a disk has the descriptors \"state\" and \"project\"");
                return;
        }
        int r = helper_start(q->launcher, q->ticket, &work, (const int[]){state, project}, 2);
        if (r < 0)
                reply(q, r, NULL);
}

static void handle_probe(Request *q) {
        int r = backend_bailey_probe(q->launcher, q->ticket);
        if (r < 0)
                reply(q, r, NULL);
}

static void handle_mkproject(Request *q) {
        _cleanup_close_ int root = message_take_fd(q->message, "root");
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *problem = NULL;
        const char *name;
        uint64_t owner;

        if (json_get_string(q->object, "name", &name) < 0 || json_get_u64(q->object, "ownerUid", UINT32_MAX - 1, &owner) < 0 || root < 0) {
                reply(q, -EINVAL, "a mkproject has \"name\", \"ownerUid\" and the descriptor \"root\"");
                return;
        }
        int r = project_make(root, name, (uid_t) owner, &problem);
        if (r < 0) {
                reply(q, r, problem);
                return;
        }
        launcher_open_reply(&w, "ok", q->ticket);
        json_add_bool(&w, "made", r > 0);
        launcher_send_reply(q->launcher, q->ticket, &w);
}

static const struct {
        const char *type;
        void (*handle)(Request *q);
        const char *members[4]; /* beside v, type, serial, fds */
        bool own_members;       /* the handler checks them */
} requests[] = {
        {"launch", handle_launch, {}, true},
        {"prepare", handle_prepare, {"session", "scope"}, false},
        {"stop", handle_stop, {"session", "shimSocket"}, false},
        {"kill", handle_kill, {"session", "shimSocket", "signal"}, false},
        {"adopt", handle_adopt, {"session", "shimSocket", "scope"}, false},
        {"usage", handle_usage, {"session", "shimSocket"}, false},
        {"collect", handle_collect, {"session"}, false},
        {"disk", handle_disk, {}, false},
        {"probe", handle_probe, {"backend"}, false},
        {"mkproject", handle_mkproject, {"name", "ownerUid"}, false},
};

static void dispatch(Request *q) {
        const char *unknown;

        int r = json_get_u64(q->object, "serial", INT64_MAX, &q->ticket.serial);
        q->ticket.has_serial = r >= 0;
        if (r < 0 && r != -ENOENT) {
                reply(q, -EINVAL, "\"serial\" is not a number");
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(requests); i++) {
                if (!streq(requests[i].type, message_type(q->message)))
                        continue;
                if (!requests[i].own_members && !request_members_known(q->object, requests[i].members, &unknown))
                        reply(q, -EINVAL, "the request has a member that it does not know");
                else
                        requests[i].handle(q);
                return;
        }
        reply(q, -EINVAL, "not a request that is known here: launch, prepare, stop, kill, adopt, usage, collect, disk, probe, mkproject");
}

/* ---- connections ---- */

static void drop_connection(Launcher *l) {
        shim_ahead_prepare(l, NULL);
        l->io = sd_event_source_disable_unref(l->io);
        l->fd = safe_close(l->fd);
}

static void end(Launcher *l) {
        l->ending = true;
        l->io = sd_event_source_disable_unref(l->io);
        sessions_end(l);
}

static int on_message(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;
        Launcher *l = userdata;
        Ticket ticket = {.connection = l->connection};

        int r = message_receive(l->fd, &m, &problem);
        if (r == -EAGAIN)
                return 0;
        if (r >= 0) {
                Request q = {.launcher = l, .message = m, .object = message_object(m), .ticket = ticket};
                dispatch(&q);
                return 0;
        }
        if (problem) {
                /* errandd and launcher are of one version: this is a defect, and sessions need not end for it. */
                log_error("A request is not understood: %s", problem);
                launcher_reply(l, ticket, -EBADMSG, problem);
                return 0;
        }
        if (r != -ECONNRESET)
                log_error_errno(r, "errandd cannot be heard: %m");
        if (l->listener >= 0)
                drop_connection(l);
        else
                end(l);
        return 0;
}

static int take_connection(Launcher *l, int fd) {
        int r = fd_nonblock(fd, true);
        if (r >= 0)
                r = sd_event_add_io(l->event, &l->io, fd, EPOLLIN, on_message, l);
        if (r < 0)
                return r;
        l->fd = fd;
        l->connection++;
        shim_ahead_later(l);
        return 0;
}

/* The newest is served: one that was started again may come before the end of the one before is seen. */
static int on_listener(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        struct ucred peer = {};
        socklen_t size = sizeof(peer);
        Launcher *l = userdata;

        _cleanup_close_ int accepted = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted < 0)
                return 0;
        if (getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != l->errandd_uid) {
                log_warning("A connection of uid %u was refused: only errandd, uid %u, may ask", peer.uid, l->errandd_uid);
                return 0;
        }
        if (l->fd >= 0)
                log_info("Another errandd has connected and is served in place of the one before");
        drop_connection(l);
        int r = take_connection(l, accepted);
        if (r < 0)
                log_error_errno(r, "errandd's connection cannot be watched: %m");
        else
                TAKE_FD(accepted);
        return 0;
}

static void on_stopping(const char *unit, void *userdata) {
        session_stopping(userdata, unit);
}

static int on_idle(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Launcher *l = userdata;

        return sd_event_exit(l->event, 0);
}

/* After everything that happened: whether there is something left to do. What connects once this was decided waits for the next launcher. */
static int on_post(_unused_ sd_event_source *source, void *userdata) {
        Launcher *l = userdata;

        if (l->fd >= 0 || l->sessions || l->n_helpers > 0)
                l->idle = sd_event_source_disable_unref(l->idle);
        else if (!l->idle) {
                int r = sd_event_add_time_relative(l->event, &l->idle, CLOCK_MONOTONIC, l->idle_usec, 1, on_idle, l);
                /* Whoever is waiting to be let in comes first. */
                return r < 0 ? r : sd_event_source_set_priority(l->idle, SD_EVENT_PRIORITY_IDLE);
        }
        return 0;
}

static int listen_for_errandd(Launcher *l) {
        int r = fd_nonblock(l->listener, true);
        if (r >= 0)
                r = sd_event_add_io(l->event, &l->listener_io, l->listener, EPOLLIN, on_listener, l);
        if (r >= 0)
                r = sd_event_add_post(l->event, NULL, on_post, l);
        return r < 0 ? r : on_post(NULL, l); /* it may have been started before anybody came */
}

static int set_up(Launcher *l, int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        int r = sd_event_new(&l->event);
        if (r >= 0)
                r = user_manager_new(l->event, on_stopping, l, &l->manager);
        if (r < 0)
                return r;
        if (l->listener >= 0)
                return listen_for_errandd(l);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        l->errandd_uid = peer.uid;
        return take_connection(l, fd);
}

int launcher_run(const LauncherOptions *o) {
        Launcher l = {.listener = o->listening ? o->fd : -EBADF, .fd = -EBADF, .errandd_uid = o->errandd_uid, .idle_usec = o->idle_usec,
                      .shim = o->shim, .bailey = o->bailey, .keeps_ahead = o->listening && o->keeps_ahead};

        int r = set_up(&l, o->fd);
        if (r >= 0)
                r = sd_event_loop(l.event);
        if (r < 0)
                log_error_errno(r, "The launcher failed: %m");
        sessions_free(&l);
        shim_ahead_end(&l);
        user_manager_free(l.manager);
        sd_event_source *sources[] = {l.listener_io, l.io, l.idle};
        for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                sd_event_source_disable_unref(sources[i]);
        sd_event_unref(l.event);
        safe_close(l.listener);
        safe_close(l.fd);
        safe_close(l.shim);
        safe_close(l.bailey);
        return r < 0 ? r : r > 0 ? -EIO : 0;
}
