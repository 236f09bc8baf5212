/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "basic/fd.h"
#include "broker/stream.h"

struct Stream {
        int fd;
        TlsSession *tls; /* NULL = plain */
        sd_event_source *io; /* NULL before the first stream_watch() */
        StreamHandler handler;
        void *userdata;
};

int stream_new(int fd, TlsPeer *peer, Stream **ret) {
        static const int on = 1;
        Stream *s = calloc(1, sizeof(Stream));

        if (!s)
                return -ENOMEM;
        if (peer) {
                int r = tls_session_new(peer, fd, &s->tls);
                if (r < 0) {
                        free(s);
                        return r;
                }
        }
        /* What is written is whole; a socket that is not TCP does not mind. */
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        s->fd = fd;
        *ret = s;
        return 0;
}

Stream *stream_free(Stream *s) {
        if (!s)
                return NULL;
        sd_event_source_disable_unref(s->io);
        s->tls = tls_session_free(s->tls);
        s->fd = safe_close(s->fd);
        return mfree(s);
}

static int on_io(_unused_ sd_event_source *source, _unused_ int fd, uint32_t events, void *userdata) {
        Stream *s = userdata;

        s->handler(events, s->userdata);
        return 0;
}

int stream_watch(Stream *s, sd_event *event, uint32_t events, StreamHandler handler, void *userdata) {
        s->handler = handler;
        s->userdata = userdata;
        if (!s->io)
                return events ? sd_event_add_io(event, &s->io, s->fd, events, on_io, s) : 0;
        /* Off, because an error is told even when nothing was asked for, again and again. */
        int r = sd_event_source_set_enabled(s->io, events ? SD_EVENT_ON : SD_EVENT_OFF);
        return r < 0 || !events ? r : sd_event_source_set_io_events(s->io, events);
}

bool stream_is_tls(const Stream *s) {
        return s->tls != NULL;
}

int stream_handshake(Stream *s, uint32_t *ret_events, char *problem) {
        return s->tls ? tls_handshake(s->tls, ret_events, problem) : 0;
}

ssize_t stream_read(Stream *s, void *data, size_t size) {
        ssize_t n;

        if (s->tls)
                return tls_read(s->tls, data, size);
        do
                n = recv(s->fd, data, size, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return n < 0 ? negative_errno() : n;
}

ssize_t stream_write(Stream *s, const void *data, size_t size) {
        ssize_t n;

        if (s->tls)
                return tls_write(s->tls, data, size);
        do
                n = send(s->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? negative_errno() : n;
}

bool stream_pending(const Stream *s) {
        return s->tls && tls_pending(s->tls);
}

void stream_remember(Stream *s) {
        if (s->tls)
                tls_remember(s->tls);
}

Stream *stream_close(Stream *s) {
        if (s && s->tls)
                tls_bye(s->tls);
        return stream_free(s);
}
