/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/socket.h>
#include <sys/un.h>

#include "basic/fd.h"
#include "errandd/shim-client.h"

struct ShimClient {
        Channel *channel;
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

int shim_client_new(sd_event *event, int directory, const char *name, void (*gone)(void *userdata), void *userdata, ShimClient **ret) {
        _cleanup_(shim_client_freep) ShimClient *s = calloc(1, sizeof(ShimClient));
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        if (!s)
                return -ENOMEM;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if ((size_t) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory, name) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        int r = channel_new(event, TAKE_FD(fd), &(ChannelHandler){.event = on_event, .gone = gone, .userdata = userdata}, &s->channel);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

int shim_client_attach(ShimClient *s, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "attach");
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

int shim_client_resize(ShimClient *s, unsigned rows, unsigned columns, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "resize");
        json_add_u64(&w, "rows", rows);
        json_add_u64(&w, "columns", columns);
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

int shim_client_signal(ShimClient *s, int signal, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "signal");
        json_add_u64(&w, "signal", (uint64_t) signal);
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}

int shim_client_stop(ShimClient *s, usec_t grace, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(s->channel, &w, "stop");
        json_add_u64(&w, "graceMs", grace / USEC_PER_MSEC);
        return channel_send(s->channel, &w, NULL, 0, reply, userdata);
}
