/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/control.h"
#include "broker/grant-request.h"
#include "broker/grants.h"
#include "broker/keep.h"
#include "broker/limits.h"
#include "broker/notices.h"
#include "broker/resolve.h"
#include "shared/json-check.h"
#include "shared/message.h"

struct Control {
        Broker *broker;
        uid_t uid;
        int listener, fd; /* -EBADF: none */
        sd_event_source *listener_io, *io;
        bool greeted; /* the connection has asked for something: it is told what happens, and what waited */
        Notices *notices;
};

/* A request being handled, and what its reply repeats. */
typedef struct Request {
        Control *control;
        Message *message;
        JsonObject *object;
        bool has_serial;
        uint64_t serial;
        bool bad; /* the connection ends after the reply */
} Request;

static void disconnect(Control *c) {
        notices_detach(c->notices);
        c->greeted = false;
        c->io = sd_event_source_disable_unref(c->io);
        c->fd = safe_close(c->fd);
        broker_check_idle(c->broker);
}

static void open_reply(Request *q, JsonWriter *w, const char *type) {
        message_open(w, type);
        if (q->has_serial)
                json_add_u64(w, "serial", q->serial);
}

static void send_reply(Request *q, JsonWriter *w) {
        int r = message_send(q->control->fd, w, NULL, 0);
        if (r < 0) {
                log_warning_errno(r, "control: a reply could not be sent, closing: %m");
                q->bad = true;
        }
}

_printf_(2, 3) static void reply_error(Request *q, const char *format, ...) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = string_format_own(format);

        open_reply(q, &w, "error");
        json_add_string(&w, "text", text ? text : "out of memory");
        send_reply(q, &w);
}

static void reply_ok(Request *q) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        open_reply(q, &w, "ok");
        send_reply(q, &w);
}

static void handle_setup(Request *q) {
        _cleanup_(setup_freep) Setup *setup = NULL;
        _cleanup_(keep_freep) Keep *keep = NULL;
        _cleanup_free_ char *problem = NULL;
        Broker *b = q->control->broker;

        if (b->setup || b->closed) {
                reply_error(q, b->closed ? "the session is closed" : "this broker was set up already");
                return;
        }
        int r = keep_new(q->message, &keep);
        if (r >= 0)
                r = setup_parse(q->message, &setup, &problem);
        if (r >= 0)
                r = broker_configure(b, setup);
        if (r >= 0) {
                TAKE_PTR(setup);
                b->keep = TAKE_PTR(keep);
                keep_begin(b->keep, b);
                reply_ok(q);
                return;
        }
        q->bad = true;
        log_error("control: setup refused: %s", problem ? problem : strerror(-r));
        reply_error(q, "%s", problem ? problem : strerror(-r));
}

static void reply_ungranted(Request *q, int error, const char *id, const char *problem) {
        reply_error(q, "grant \"%s\": %s", id,
                    error == -EBADMSG  ? problem
                    : error == -EEXIST ? "there is one of that id already"
                    : error == -ENOSPC ? "there are too many grants already"
                                       : strerror(-error));
}

static void handle_grant(Request *q) {
        Broker *b = q->control->broker;
        const char *problem = NULL;
        GrantRequest g;

        if (grant_request_read(q->object, &g, &problem) < 0) {
                q->bad = true;
                reply_error(q, "%s", problem);
                return;
        }
        if (!b->setup || b->closed) {
                reply_error(q, b->closed ? "the session is closed" : "not set up yet");
                return;
        }
        int r = grants_add(b->grants, g.id, g.host, g.duration, g.deadline, grants_now(), &problem);
        if (r < 0) {
                reply_ungranted(q, r, g.id, problem);
                return;
        }
        keep_save(b->keep, b);
        log_info("session %s: granted %s (%s) as %s", b->setup->session, g.host, grant_duration_to_string(g.duration), g.id);
        reply_ok(q);
}

/* All of them, or none; what is kept of them is written once. */
static void handle_grants(Request *q) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        _cleanup_free_ GrantRequest *list = NULL;
        _cleanup_free_ char *malformed = NULL;
        const char *problem = NULL;
        size_t n = 0, added = 0, at = 0;
        Broker *b = q->control->broker;
        JsonArray *names;

        int fd = message_peek_fd(q->message, "grants");
        if (fd < 0 || json_get_array(q->object, "fds", &names) < 0 || json_array_get_length(names) != 1) {
                q->bad = true;
                reply_error(q, "\"grants\" has one descriptor, which is called so");
                return;
        }
        int r = grant_requests_read(fd, &parser, &list, &n, &malformed);
        if (r < 0) {
                q->bad = true;
                reply_error(q, "%s", malformed ?: strerror(-r));
                return;
        }
        if (!b->setup || b->closed) {
                reply_error(q, b->closed ? "the session is closed" : "not set up yet");
                return;
        }
        r = grants_add_all(b->grants, list, n, grants_now(), &added, &at, &problem);
        if (r < 0) {
                reply_ungranted(q, r, n > 0 ? list[at].id : "", problem);
                return;
        }
        if (added > 0)
                keep_save(b->keep, b);
        log_info("session %s: granted %zu hosts that were granted before", b->setup->session, added);
        reply_ok(q);
}

static void handle_revoke(Request *q) {
        Broker *b = q->control->broker;
        const char *id;

        if (json_get_string(q->object, "id", &id) < 0) {
                q->bad = true;
                reply_error(q, "a revoke has the string \"id\"");
        } else if (!b->setup)
                reply_error(q, "not set up yet");
        else if (grants_revoke(b->grants, id) < 0)
                reply_error(q, "there is no grant \"%s\"", id);
        else {
                keep_save(b->keep, b);
                log_info("session %s: revoked grant %s", b->setup->session, id);
                reply_ok(q);
        }
}

static void handle_close(Request *q) {
        broker_close(q->control->broker);
        notices_sum_up(q->control->notices); /* nothing is refused any more, so what waited for its minute is told now */
        reply_ok(q);
}

static void handle_stats(Request *q) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        Broker *b = q->control->broker;

        open_reply(q, &w, "stats");
        json_add_string(&w, "session", b->setup ? b->setup->session : NULL);
        json_add_bool(&w, "configured", b->setup != NULL);
        json_add_bool(&w, "handedOver", b->listen_port != 0);
        json_add_bool(&w, "listening", b->acceptor != NULL);
        json_add_u64(&w, "port", b->listen_port);
        json_add_bool(&w, "closed", b->closed);
        json_add_u64(&w, "connections", b->n_connections);
        json_add_u64(&w, "tunnels", b->n_tunnels);
        json_add_u64(&w, "lookups", resolver_pending(b->resolver));
        json_add_u64(&w, "grants", b->grants ? grants_count(b->grants) : 0);
        json_add_u64(&w, "accepted", b->n_accepted);
        json_add_u64(&w, "refused", notices_refused_total(q->control->notices));
        json_add_u64(&w, "turnedAway", b->n_refused);
        send_reply(q, &w);
}

static const struct {
        const char *type;
        void (*handle)(Request *q);
        const char *members[4]; /* beside v, type, serial, fds; NULL first: checked by the handler */
} requests[] = {
        {"setup", handle_setup, {}},       {"grant", handle_grant, {"id", "host", "duration", "expires"}},
        {"grants", handle_grants, {"fds"}}, {"revoke", handle_revoke, {"id"}},
        {"close", handle_close, {""}},     {"stats", handle_stats, {""}},
};

static const char *unknown_member(JsonObject *o, const char *const *known, size_t n_known) {
        static const char *const always[] = {"v", "type", "serial"};
        GList *names = json_object_get_members(o);
        const char *unknown = NULL;

        for (GList *i = names; i && !unknown; i = i->next) {
                bool found = false;
                for (size_t k = 0; k < ELEMENTSOF(always) && !found; k++)
                        found = streq(i->data, always[k]);
                for (size_t k = 0; k < n_known && known[k] && !found; k++)
                        found = streq(i->data, known[k]);
                if (!found)
                        unknown = i->data;
        }
        g_list_free(names);
        return unknown;
}

static void handle(Request *q) {
        const char *type = message_type(q->message), *unknown;

        q->object = message_object(q->message);
        int r = json_get_u64(q->object, "serial", INT64_MAX, &q->serial);
        q->has_serial = r >= 0;
        q->bad = true;
        if (r < 0 && r != -ENOENT) {
                reply_error(q, "\"serial\" is not a number");
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(requests); i++) {
                if (!streq(type, requests[i].type))
                        continue;
                if (requests[i].members[0] &&
                    (unknown = unknown_member(q->object, requests[i].members, ELEMENTSOF(requests[i].members)))) {
                        reply_error(q, "\"%s\" has no \"%s\"", type, unknown);
                        return;
                }
                q->bad = false;
                requests[i].handle(q);
                if (!q->bad && !q->control->greeted) {
                        q->control->greeted = true;
                        notices_attach(q->control->notices, q->control->fd);
                }
                return;
        }
        reply_error(q, "\"%s\" is not a request", type);
}

/* True when there was one, and the connection is still there. */
static bool serve_one(Control *c) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;
        Request q = {.control = c};

        int r = message_receive(c->fd, &m, &problem);
        if (r == -EAGAIN)
                return false;
        if (r < 0) {
                if (r == -EBADMSG) {
                        log_warning("control: a message was refused: %s", problem ? problem : "malformed");
                        (void) message_reply_error(c->fd, problem ? problem : "malformed message");
                }
                disconnect(c);
                return false;
        }
        q.message = m;
        handle(&q);
        if (q.bad)
                disconnect(c);
        return !q.bad;
}

static int on_message(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        (void) serve_one(userdata);
        return 0;
}

static bool peer_allowed(const Control *c, int fd) {
        struct ucred cred;
        socklen_t size = sizeof(cred);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
                return false;
        if (cred.uid == 0 || cred.uid == c->uid)
                return true;
        log_warning("control: refused a connection of uid %u", cred.uid);
        return false;
}

/* The newer one is the supervisor: it was started in place of one that died, or that will. What that one has asked for is done first: a close that
 * was sent is not lost with its sender. */
static void replace_peer(Control *c) {
        for (unsigned i = 0; c->fd >= 0 && i < REPLACED_REQUESTS_MAX && serve_one(c); i++)
                ;
        if (c->fd < 0)
                return;
        (void) message_reply_error(c->fd, "another supervisor has connected in place of this one");
        disconnect(c);
}

/* fd is taken always. */
static int connect_peer(Control *c, int fd) {
        if (!peer_allowed(c, fd)) {
                safe_close(fd);
                return -EPERM;
        }
        if (c->fd >= 0)
                replace_peer(c);
        c->fd = fd;
        int r = fd_nonblock(fd, true);
        if (r >= 0)
                r = sd_event_add_io(c->broker->event, &c->io, fd, EPOLLIN, on_message, c);
        if (r >= 0)
                /* A supervisor that connected before its broker ran is served before the session's first message. */
                r = sd_event_source_set_priority(c->io, SD_EVENT_PRIORITY_IMPORTANT);
        if (r < 0) {
                disconnect(c);
                return r;
        }
        return 0;
}

static int on_connection(_unused_ sd_event_source *s, int listener, _unused_ uint32_t revents, void *userdata) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
                (void) connect_peer(userdata, fd);
        return 0;
}

int control_new(Broker *b, int fd, uid_t uid, Control **ret) {
        int listening = 0;
        socklen_t size = sizeof(listening);
        int r;

        _cleanup_(control_freep) Control *c = calloc(1, sizeof(Control));
        if (!c || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0) {
                r = c ? -errno : -ENOMEM;
                safe_close(fd);
                return r;
        }
        c->broker = b;
        c->uid = uid;
        c->fd = c->listener = -EBADF;
        r = notices_new(b->event, &c->notices);
        if (r < 0) {
                safe_close(fd);
                return r;
        }
        if (listening) {
                c->listener = fd;
                r = fd_nonblock(fd, true);
                if (r >= 0)
                        r = sd_event_add_io(b->event, &c->listener_io, fd, EPOLLIN, on_connection, c);
                if (r >= 0)
                        r = sd_event_source_set_priority(c->listener_io, SD_EVENT_PRIORITY_IMPORTANT);
                if (r >= 0)
                        r = sd_event_source_set_ratelimit(c->listener_io, ACCEPTS_USEC, ACCEPTS_MAX);
        } else
                r = connect_peer(c, fd);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

Control *control_free(Control *c) {
        if (!c)
                return NULL;
        sd_event_source_disable_unref(c->listener_io);
        sd_event_source_disable_unref(c->io);
        safe_close(c->listener);
        safe_close(c->fd);
        notices_free(c->notices);
        return mfree(c);
}

bool control_is_connected(const Control *c) {
        return c && c->fd >= 0;
}

void control_set_refused_total(Control *c, uint64_t total) {
        notices_set_refused_total(c->notices, total);
}

void control_note_refused(Control *c, const char *host, uint16_t port) {
        if (!c)
                return;
        notices_refused(c->notices, host, port);
        keep_count(c->broker->keep, notices_refused_total(c->notices));
}

void control_note_grant_used(Control *c, const char *id, const char *host, bool in_spool) {
        if (c)
                notices_grant_used(c->notices, id, host, in_spool);
}

void control_note_receipt_failed(Control *c) {
        if (c)
                notices_receipt_failed(c->notices);
}
