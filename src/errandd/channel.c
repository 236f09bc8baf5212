/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/channel.h"

typedef struct Pending {
        struct Pending *next;
        uint64_t serial;
        ChannelReply reply;
        ChannelDrop drop; /* NULL: userdata is somebody else's */
        void *userdata;
} Pending;

struct Channel {
        int fd;
        sd_event_source *io, *again; /* NULL: it is not paused */
        usec_t paused_until;
        ChannelHandler handler;
        uint64_t serial;
        Pending *pending;
        size_t n_pending;
        uint64_t strays; /* answers that nobody waits for */
        unsigned busy; /* calls of us that are under way */
        bool freed;    /* by one of the callbacks */
};

static void drop_pending(Channel *c) {
        while (c->pending) {
                Pending *p = c->pending;
                c->pending = p->next;
                c->n_pending--;
                if (p->drop)
                        p->drop(p->userdata);
                free(p);
        }
}

static void close_end(Channel *c) {
        c->again = sd_event_source_disable_unref(c->again);
        c->io = sd_event_source_disable_unref(c->io);
        c->fd = safe_close(c->fd);
}

Channel *channel_free(Channel *c) {
        if (!c)
                return NULL;
        close_end(c);
        drop_pending(c);
        if (c->busy > 0)
                c->freed = true;
        else
                free(c);
        return NULL;
}

static void leave(Channel *c) {
        if (--c->busy == 0 && c->freed)
                free(c);
}

static void fail(Channel *c) {
        close_end(c);
        while (c->pending && !c->freed) {
                Pending *p = c->pending;
                c->pending = p->next;
                c->n_pending--;
                if (p->reply)
                        p->reply(NULL, "it ended before it had answered", p->userdata);
                free(p);
        }
        if (!c->freed && c->handler.gone)
                c->handler.gone(c->handler.userdata);
}

static void answer(Channel *c, Message *m, uint64_t serial) {
        for (Pending **at = &c->pending; *at; at = &(*at)->next) {
                Pending *p = *at;
                const char *problem = NULL;

                if (p->serial != serial)
                        continue;
                *at = p->next;
                c->n_pending--;
                if (streq(message_type(m), "error") && json_get_string(message_object(m), "text", &problem) < 0)
                        problem = "an error without a text";
                if (p->reply)
                        p->reply(m, problem, p->userdata);
                else if (problem)
                        log_warning("a request was refused: %s", problem);
                free(p);
                return;
        }
        if (log_is_due(++c->strays))
                log_warning("an answer to no request was ignored, %llu of them so far", (unsigned long long) c->strays);
}

static int on_message(_unused_ sd_event_source *s, int fd, _unused_ uint32_t revents, void *userdata) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;
        Channel *c = userdata;
        uint64_t serial;

        int r = message_receive(fd, &m, &problem);
        if (r == -EAGAIN)
                return 0;
        c->busy++;
        if (r < 0) {
                if (problem)
                        log_warning("a message was refused, closing the connection: %s", problem);
                fail(c);
        } else if (json_get_u64(message_object(m), "serial", INT64_MAX, &serial) >= 0)
                answer(c, m, serial);
        else if (c->handler.event)
                c->handler.event(m, c->handler.userdata);
        leave(c);
        return 0;
}

int channel_new(sd_event *event, int fd, const ChannelHandler *handler, Channel **ret) {
        _cleanup_(channel_freep) Channel *c = calloc(1, sizeof(Channel));

        if (!c) {
                safe_close(fd);
                return -ENOMEM;
        }
        c->fd = fd;
        c->handler = *handler;
        int r = fd_nonblock(fd, true);
        if (r >= 0)
                r = sd_event_add_io(event, &c->io, fd, EPOLLIN, on_message, c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

static int on_pause_end(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Channel *c = userdata;

        c->again = sd_event_source_disable_unref(c->again);
        if (sd_event_source_set_enabled(c->io, SD_EVENT_ON) < 0)
                channel_break(c);
        return 0;
}

void channel_pause(Channel *c, usec_t usec) {
        usec_t until = now_monotonic() + usec;
        int r;

        if (!c->io || (c->again && until <= c->paused_until))
                return;
        c->paused_until = until;
        if (c->again)
                r = sd_event_source_set_time(c->again, until);
        else
                r = sd_event_add_time(sd_event_source_get_event(c->io), &c->again, CLOCK_MONOTONIC, until, USEC_PER_MSEC, on_pause_end, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
        if (r < 0)
                channel_break(c);
}

void channel_break(Channel *c) {
        if (c->fd >= 0)
                (void) shutdown(c->fd, SHUT_RDWR);
}

int channel_connect(int directory, const char *name, uid_t uid) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct ucred peer;
        socklen_t size = sizeof(peer);

        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if ((size_t) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory, name) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        if (uid != UID_ANY && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        return uid == UID_ANY || peer.uid == uid ? TAKE_FD(fd) : -EPERM;
}

void channel_open(Channel *c, JsonWriter *w, const char *type) {
        message_open(w, type);
        json_add_u64(w, "serial", ++c->serial);
}

int channel_send_owned(Channel *c, JsonWriter *w, const int *fds, size_t n_fds, ChannelReply reply, ChannelDrop drop, void *userdata) {
        if (c->fd < 0)
                return -ENOTCONN;
        if (c->n_pending >= CHANNEL_PENDING_MAX)
                return -EAGAIN;
        Pending *p = calloc(1, sizeof(Pending));
        if (!p)
                return -ENOMEM;
        *p = (Pending){.serial = c->serial, .reply = reply, .drop = drop, .userdata = userdata};
        int r = message_send(c->fd, w, fds, n_fds);
        if (r < 0) {
                free(p);
                return r;
        }
        /* Answers come in order, so the oldest is found first. */
        Pending **at = &c->pending;
        while (*at)
                at = &(*at)->next;
        *at = p;
        c->n_pending++;
        return 0;
}

int channel_send(Channel *c, JsonWriter *w, const int *fds, size_t n_fds, ChannelReply reply, void *userdata) {
        return channel_send_owned(c, w, fds, n_fds, reply, NULL, userdata);
}

void channel_forget(Channel *c, const void *userdata) {
        for (Pending *p = c->pending; p; p = p->next)
                if (p->userdata == userdata)
                        p->reply = NULL;
}
