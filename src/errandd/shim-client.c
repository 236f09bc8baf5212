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
};

ShimClient *shim_client_free(ShimClient *s) {
        if (!s)
                return NULL;
        channel_free(s->channel);
        return mfree(s);
}

static void on_event(_unused_ Message *m, _unused_ void *userdata) {
        /* Nothing is watched over the socket: the events file has it all. */
}

int shim_client_new(sd_event *event, int directory, const char *name, uid_t uid, void (*gone)(void *userdata), void *userdata, ShimClient **ret) {
        _cleanup_(shim_client_freep) ShimClient *s = calloc(1, sizeof(ShimClient));
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (!s)
                return -ENOMEM;
        s->pid = -1;
        int fd = channel_connect(directory, name, uid);
        if (fd < 0)
                return fd;
        s->fd = fd; /* the channel's */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) >= 0)
                s->pid = peer.pid;
        int r = channel_new(event, fd, &(ChannelHandler){.event = on_event, .gone = gone, .userdata = userdata}, &s->channel);
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

int shim_client_attach(ShimClient *s, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "attach");
        return channel_send_owned(s->channel, &w, NULL, 0, reply, drop, userdata);
}

int shim_client_resize(ShimClient *s, unsigned rows, unsigned columns, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "resize");
        json_add_u64(&w, "rows", rows);
        json_add_u64(&w, "columns", columns);
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
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
