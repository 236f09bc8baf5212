/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "shared/message.h"
#include "shim/backlog.h"
#include "shim/control-conversation.h"
#include "shim/shim.h"
#include "shim/watcher.h"

typedef struct Connection {
        Control *control;
        struct Connection *next;
        int fd;
        sd_event_source *io;
        bool watches;
        Watcher watcher;
        bool bad; /* goes after the reply */
} Connection;

struct Control {
        Shim *shim;
        uid_t uid;
        int directory; /* the socket's, so that it is reached and removed whatever its path's length */
        char *name;
        ino_t inode; /* of the socket's name: one that a successor put there is not ours to remove */
        int fd;
        sd_event_source *io;
        Connection *connections;
        size_t n_connections;
        uint64_t missed; /* updates, since the last watcher went */
        uint64_t told;   /* the number of the last update */
        Backlog backlog;
        bool catching_up;
};

/* A request being handled, and what its reply repeats. */
typedef struct Request {
        Connection *connection;
        Shim *shim;
        Message *message;
        JsonObject *object;
        bool has_serial;
        uint64_t serial;
} Request;

static void connection_close(Connection *c) {
        Control *control = c->control;

        for (Connection **p = &control->connections; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        control->n_connections--;
        control->missed += watcher_done(&c->watcher);
        sd_event_source_disable_unref(c->io);
        safe_close(c->fd);
        free(c);
}

static void open_reply(const Request *q, JsonWriter *w, const char *type) {
        message_open(w, type);
        if (q->has_serial)
                json_add_u64(w, "serial", q->serial);
}

/* Behind all that it is still owed. Who asks on and on without reading goes. */
static void send_reply(Request *q, JsonWriter *w, int fd) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        int r = message_close(w, &text, &size);
        if (r >= 0)
                r = watcher_reply(&q->connection->watcher, text, size, fd);
        if (r < 0)
                q->connection->bad = true;
}

/* One that lags is told when it reads again. */
static void update_events(Connection *c) {
        (void) sd_event_source_set_io_events(c->io, EPOLLIN | (watcher_waits(&c->watcher) ? EPOLLOUT : 0U));
}

static void reply_error(Request *q, const char *text) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        open_reply(q, &w, "error");
        json_add_string(&w, "text", text);
        send_reply(q, &w, -EBADF);
}

static void reply(Request *q, int error) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (error < 0) {
                reply_error(q, error == -ESRCH ? "the session has ended" : strerror(-error));
                return;
        }
        open_reply(q, &w, "ok");
        send_reply(q, &w, -EBADF);
}

static void handle_attach(Request *q) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_close_ int fd = -EBADF;

        if (!q->shim->terminal) {
                reply_error(q, "the session has no terminal");
                return;
        }
        int r = terminal_attach(q->shim->terminal, &fd);
        if (r < 0) {
                reply_error(q, r == -EMFILE ? "too many are attached already; detach one" : strerror(-r));
                return;
        }
        open_reply(q, &w, "attached");
        message_add_fd(&w, "terminal");
        send_reply(q, &w, fd);
}

static void handle_resize(Request *q) {
        uint64_t rows, columns;

        if (json_get_u64(q->object, "rows", UINT16_MAX, &rows) < 0 || json_get_u64(q->object, "columns", UINT16_MAX, &columns) < 0 ||
            rows == 0 || columns == 0)
                reply_error(q, "\"rows\" and \"columns\" are numbers from 1 to 65535");
        else if (!q->shim->terminal)
                reply_error(q, "the session has no terminal");
        else
                reply(q, terminal_resize(q->shim->terminal, (uint16_t) rows, (uint16_t) columns));
}

static void handle_signal(Request *q) {
        uint64_t number;

        if (json_get_u64(q->object, "signal", SIGRTMAX, &number) < 0 || number == 0)
                reply_error(q, "\"signal\" is not the number of a signal");
        else
                reply(q, shim_signal(q->shim, (int) number));
}

static void handle_stop(Request *q) {
        uint64_t grace = q->shim->options->grace_usec / USEC_PER_MSEC;
        const char *text = NULL;

        int r = json_get_u64(q->object, "graceMs", GRACE_USEC_MAX / USEC_PER_MSEC, &grace), t = json_get_string(q->object, "text", &text);
        if ((r < 0 && r != -ENOENT) || (t < 0 && t != -ENOENT)) {
                reply_error(q, "\"graceMs\" is a number of milliseconds, at most an hour, and \"text\" a text");
                return;
        }
        if (text)
                shim_note(q->shim, text);
        reply(q, shim_stop(q->shim, grace * USEC_PER_MSEC));
}

static void add_state(const Shim *s, JsonWriter *w) {
        json_add_string(w, "state", shim_state_to_string(s->state));
        if (s->pid1 > 0)
                json_add_u64(w, "pid", (uint64_t) s->pid1);
        json_add_u64(w, "attached", s->terminal ? terminal_clients(s->terminal) : 0);
        if (s->state == SHIM_EXITED) {
                json_add_string(w, "reason", exit_reason_to_string(s->exit.reason));
                json_add_u64(w, "status", s->exit.status);
                json_add_string(w, "text", s->exit.text);
        }
}

static int take_request(Connection *c);

/* What was asked over other connections and not taken yet: where things are is told after that to who comes anew, for whom it is of before. */
static void catch_up(Control *control, const Connection *newest) {
        if (control->catching_up)
                return;
        control->catching_up = true;
        for (Connection *c = control->connections, *next; c; c = next) {
                next = c->next; /* only itself is closed by what it asks */
                for (unsigned i = 0; c != newest && i < CATCH_UP_MAX && take_request(c) > 0; i++)
                        ;
        }
        control->catching_up = false;
}

/* Its connection broke, and the last that it got of before has that number: what came after that is told again, before it is told where things are. */
static void resume(Connection *c, uint64_t after) {
        Control *control = c->control;

        catch_up(control, c);
        c->watches = true;
        control->missed = 0;
        if (backlog_tell(&control->backlog, &c->watcher, MIN(after, control->told), control->told) < 0)
                c->bad = true;
}

/* What is open is told again, and how much was missed. */
static void begin_to_watch(Connection *c) {
        Control *control = c->control;

        c->watches = true;
        int r = watcher_miss(&c->watcher, control->missed, control->told);
        if (r >= 0) {
                control->missed = 0;
                r = watcher_flush(&c->watcher);
        }
        if (r < 0)
                c->bad = true;
        else if (control->shim->conversation)
                conversation_tell_questions(control->shim->conversation);
}

static void handle_status(Request *q) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        bool has_fd = q->shim->pid1_fd >= 0, watch = q->connection->watches;
        uint64_t after;

        int r = json_get_bool(q->object, "watch", &watch), a = json_get_u64(q->object, "after", INT64_MAX, &after);
        if ((r < 0 && r != -ENOENT) || (a < 0 && a != -ENOENT)) {
                reply_error(q, "\"watch\" is true or false, and \"after\" the number of an update");
                return;
        }
        if (watch && a >= 0 && !q->connection->watches)
                resume(q->connection, after);
        open_reply(q, &w, "status");
        add_state(q->shim, &w);
        if (q->shim->conversation) {
                json_add_u64(&w, "told", q->connection->control->told);
                conversation_add_state(q->shim->conversation, &w);
        }
        if (has_fd)
                message_add_fd(&w, "pidfd");
        send_reply(q, &w, has_fd ? q->shim->pid1_fd : -EBADF);
        if (watch && !q->connection->watches)
                begin_to_watch(q->connection);
        q->connection->watches = watch;
}

static void handle_conversation(Request *q, ControlConversation handle) {
        const char *problem = NULL;

        if (!q->shim->conversation) {
                reply_error(q, "the session has no conversation: its agent's protocol is none");
                return;
        }
        int r = handle(q->shim->conversation, q->message, &problem);
        if (problem)
                reply_error(q, problem);
        else
                reply(q, r);
}

static const struct {
        const char *type;
        void (*handle)(Request *q);
        ControlConversation converse; /* instead of it */
        const char *members[3];       /* beside v, type, serial */
} requests[] = {
        {"attach", handle_attach, NULL, {}},
        {"resize", handle_resize, NULL, {"rows", "columns"}},
        {"signal", handle_signal, NULL, {"signal"}},
        {"stop", handle_stop, NULL, {"graceMs", "text"}},
        {"status", handle_status, NULL, {"watch", "after"}},
        {"prompt", NULL, control_prompt, {"number", "waitMs", "fds"}},
        {"turn", NULL, control_turn, {}},
        {"interrupt", NULL, control_interrupt, {}},
        {"answer", NULL, control_answer, {"question", "option"}},
};

static bool members_known(JsonObject *o, const char *const *known, size_t n_known) {
        static const char *const always[] = {"v", "type", "serial"}; /* and fds where a request has them */
        GList *names = json_object_get_members(o);
        bool good = true;

        for (GList *i = names; i && good; i = i->next) {
                good = false;
                for (size_t k = 0; k < ELEMENTSOF(always); k++)
                        good |= streq(i->data, always[k]);
                for (size_t k = 0; k < n_known && known[k]; k++)
                        good |= streq(i->data, known[k]);
        }
        g_list_free(names);
        return good;
}

static void dispatch(Request *q, const char *type) {
        int r = json_get_u64(q->object, "serial", INT64_MAX, &q->serial);

        q->has_serial = r >= 0;
        for (size_t i = 0; i < ELEMENTSOF(requests) && (r >= 0 || r == -ENOENT); i++)
                if (streq(requests[i].type, type)) {
                        if (!members_known(q->object, requests[i].members, ELEMENTSOF(requests[i].members)))
                                break;
                        if (requests[i].converse)
                                handle_conversation(q, requests[i].converse);
                        else
                                requests[i].handle(q);
                        return;
                }
        q->connection->bad = true;
        reply_error(q, "not a request that is known here: attach, resize, signal, stop, status, prompt, turn, interrupt, answer");
}

/* 1; 0: there is none; a negative errno: the connection is over and closed. */
static int take_request(Connection *c) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;

        int r = message_receive(c->fd, &m, &problem);
        if (r == -EAGAIN)
                return 0;
        if (r >= 0) {
                Request q = {.connection = c, .shim = c->control->shim, .message = m, .object = message_object(m)};
                dispatch(&q, message_type(m));
        } else if (problem)
                (void) message_reply_error(c->fd, problem);
        if (r < 0 || c->bad) {
                connection_close(c);
                return -ECONNRESET;
        }
        update_events(c); /* it may be taken outside of its own turn */
        return 1;
}

static int on_connection(_unused_ sd_event_source *source, _unused_ int fd, uint32_t revents, void *userdata) {
        Connection *c = userdata;

        if (revents & EPOLLOUT && watcher_flush(&c->watcher) < 0)
                connection_close(c);
        else if (take_request(c) == 0)
                update_events(c);
        return 0;
}

/* To all who watch; the number of them. */
static size_t tell(Control *c, const char *text, size_t size, bool keep) {
        size_t n = 0;

        for (Connection *i = c->connections; i; i = i->next) {
                if (!i->watches || i->bad)
                        continue;
                n++;
                /* It may be in the middle of being answered: who cannot be told any more is closed by its own next event. */
                if (watcher_send(&i->watcher, text, size, c->told, keep) < 0)
                        (void) shutdown(i->fd, SHUT_RDWR);
                else
                        update_events(i);
        }
        return n;
}

static int finish(JsonWriter *w, char **ret, size_t *ret_size) {
        int r = message_close(w, ret, ret_size);

        return r < 0 ? log_warning_errno(r, "errandd is not told of something, there is no memory: %m") : 0;
}

void control_tell_state(Control *c) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        size_t size;

        message_open(&w, "state");
        add_state(c->shim, &w);
        if (finish(&w, &text, &size) >= 0)
                (void) tell(c, text, size, true);
}

void control_tell_update(Control *c, JsonWriter *w, bool keep) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        json_add_u64(w, "number", ++c->told);
        int r = finish(w, &text, &size);
        if (r >= 0 && keep)
                backlog_add(&c->backlog, c->told, text, size);
        if (r < 0 || tell(c, text, size, keep) == 0)
                c->missed++;
}

bool control_has_pending(const Control *c) {
        for (const Connection *i = c->connections; i; i = i->next)
                if (watcher_waits(&i->watcher))
                        return true;
        return false;
}

static int on_listener(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        struct ucred peer = {};
        socklen_t size = sizeof(peer);
        Control *control = userdata;

        _cleanup_close_ int accepted = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted < 0)
                return 0;
        if (getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || (peer.uid != control->uid && peer.uid != 0)) {
                log_warning("A connection of uid %u was refused: only errandd may ask", peer.uid);
                return 0;
        }
        if (control->n_connections >= CONNECTIONS_MAX) {
                log_warning("A connection was refused: there are %u already", CONNECTIONS_MAX);
                return 0;
        }
        Connection *c = calloc(1, sizeof(Connection));
        if (!c)
                return 0;
        *c = (Connection){.control = control, .fd = TAKE_FD(accepted), .next = control->connections};
        c->watcher.fd = c->fd;
        control->connections = c;
        control->n_connections++;
        if (sd_event_add_io(control->shim->event, &c->io, c->fd, EPOLLIN, on_connection, c) < 0)
                connection_close(c);
        return 0;
}

/* Only a socket is replaced. */
static int remove_stale(const Control *c) {
        struct stat st;

        if (fstatat(c->directory, c->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(st.st_mode))
                return -EEXIST;
        return unlinkat(c->directory, c->name, 0) < 0 ? -errno : 0;
}

static int listen_at(Control *c, const char *path) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *slash = strrchr(path, '/');

        if (!slash || slash == path || !slash[1])
                return -EINVAL;
        _cleanup_free_ char *directory = strndup(path, (size_t) (slash - path));
        c->name = strdup(slash + 1);
        if (!directory || !c->name)
                return -ENOMEM;
        c->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (c->directory < 0)
                return -errno;
        int r = remove_stale(c);
        if (r < 0)
                return r;
        if ((size_t) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", c->directory, c->name) >=
            sizeof(address.sun_path))
                return -ENAMETOOLONG;
        c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (c->fd < 0)
                return -errno;
        mode_t mask = umask(c->uid == getuid() || c->uid == 0 ? 0177 : 0117);
        r = bind(c->fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
        (void) umask(mask);
        struct stat st;
        if (r >= 0 && fstatat(c->directory, c->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                r = -errno;
        if (r < 0)
                return r;
        c->inode = st.st_ino;
        return listen(c->fd, CONNECTIONS_MAX) < 0 ? -errno : 0;
}

int control_new(Shim *s, const char *path, uid_t uid, Control **ret) {
        _cleanup_(control_freep) Control *c = calloc(1, sizeof(Control));

        if (!c)
                return -ENOMEM;
        *c = (Control){.shim = s, .uid = uid, .directory = -EBADF, .fd = -EBADF};
        int r = listen_at(c, path);
        if (r >= 0)
                r = sd_event_add_io(s->event, &c->io, c->fd, EPOLLIN, on_listener, c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

Control *control_free(Control *c) {
        if (!c)
                return NULL;
        while (c->connections)
                connection_close(c->connections);
        backlog_done(&c->backlog);
        sd_event_source_disable_unref(c->io);
        struct stat st;
        if (c->inode && fstatat(c->directory, c->name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && st.st_ino == c->inode)
                (void) unlinkat(c->directory, c->name, 0);
        safe_close(c->fd);
        safe_close(c->directory);
        free(c->name);
        return mfree(c);
}
