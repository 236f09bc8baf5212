/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "basic/fd.h"
#include "errandd/shim-client.h"

struct ShimClient {
        Channel *channel;
        int fd;    /* borrowed from it */
        pid_t pid;
        void (*event)(Message *m, void *userdata);
        void *event_userdata;
        void (*gone)(void *userdata);
        void *gone_userdata;
};

ShimClient *shim_client_free(ShimClient *s) {
        if (!s)
                return NULL;
        channel_free(s->channel);
        return mfree(s);
}

/* Of a session that is talked to. The life of a session is in its events file, and nothing else is watched over the socket. */
static void on_event(Message *m, void *userdata) {
        ShimClient *s = userdata;

        if (s->event)
                s->event(m, s->event_userdata);
}

static void on_gone(void *userdata) {
        ShimClient *s = userdata;

        if (s->gone)
                s->gone(s->gone_userdata);
}

int shim_client_new(sd_event *event, int directory, const char *name, uid_t uid, void (*gone)(void *userdata), void *userdata, ShimClient **ret) {
        _cleanup_(shim_client_freep) ShimClient *s = calloc(1, sizeof(ShimClient));
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (!s)
                return -ENOMEM;
        s->pid = -1;
        s->gone = gone;
        s->gone_userdata = userdata;
        int fd = channel_connect(directory, name, uid);
        if (fd < 0)
                return fd;
        s->fd = fd; /* the channel's */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0)
                s->pid = peer.pid;
        int r = channel_new(event, fd, &(ChannelHandler){.event = on_event, .gone = on_gone, .userdata = s}, &s->channel);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

/* Opened while its end of the connection is open, so that the number is still its own: it closes the connection by ending, and not before. */
int shim_client_open_pidfd(const ShimClient *s) {
        struct pollfd p = {.fd = s->fd, .events = POLLRDHUP};

        _cleanup_close_ int pidfd = s->pid > 0 ? pidfd_open(s->pid, 0) : -EBADF;
        if (s->pid <= 0)
                return -ESRCH;
        if (pidfd < 0)
                return -errno;
        if (poll(&p, 1, 0) != 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)))
                return -ESRCH;
        return TAKE_FD(pidfd);
}

pid_t shim_client_pid(const ShimClient *s) {
        return s->pid;
}

void shim_client_pause(ShimClient *s, usec_t usec) {
        channel_pause(s->channel, usec);
}

void shim_client_break(ShimClient *s) {
        channel_break(s->channel);
}

int shim_client_attach(ShimClient *s, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "attach");
        return channel_send_owned(s->channel, &w, NULL, 0, reply, drop, userdata);
}

int shim_client_resize(ShimClient *s, unsigned rows, unsigned columns, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "resize");
        json_add_u64(&w, "rows", rows);
        json_add_u64(&w, "columns", columns);
        return channel_send_owned(s->channel, &w, NULL, 0, reply, drop, userdata);
}

int shim_client_signal(ShimClient *s, int signal, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "signal");
        json_add_u64(&w, "signal", (uint64_t) signal);
        return channel_send_owned(s->channel, &w, NULL, 0, reply, drop, userdata);
}

int shim_client_stop(ShimClient *s, usec_t grace, const char *text, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "stop");
        json_add_u64(&w, "graceMs", grace / USEC_PER_MSEC);
        if (text)
                json_add_string(&w, "text", text);
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

int shim_client_status(ShimClient *s, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "status");
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

int shim_client_watch(ShimClient *s, const uint64_t *after, void (*event)(Message *m, void *userdata), ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "status");
        json_add_bool(&w, "watch", true);
        if (after)
                json_add_u64(&w, "after", *after);
        int r = channel_send(s->channel, &w, NULL, 0, reply, userdata);
        if (r < 0)
                return r;
        s->event = event;
        s->event_userdata = userdata;
        return 0;
}

void shim_client_unwatch(ShimClient *s) {
        s->event = NULL;
}

int shim_client_prompt(ShimClient *s, uint64_t number, usec_t wait, int text, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "prompt");
        json_add_u64(&w, "number", number);
        json_add_u64(&w, "waitMs", wait / USEC_PER_MSEC);
        message_add_fd(&w, "text");
        return channel_send(s->channel, &w, &text, 1, reply, userdata);
}

int shim_client_turn(ShimClient *s, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "turn");
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

int shim_client_interrupt(ShimClient *s, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "interrupt");
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

int shim_client_answer(ShimClient *s, uint64_t question, const char *option, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "answer");
        json_add_u64(&w, "question", question);
        json_add_string(&w, "option", option);
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

void shim_client_forget(ShimClient *s, const void *userdata) {
        channel_forget(s->channel, userdata);
}
