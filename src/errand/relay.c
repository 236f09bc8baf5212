/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>
#include <unistd.h>

#include "errand/relay.h"

struct Relay {
        RelayOptions o;
        sd_event *event;
        sd_event_source *read, *write;
        char buffer[2 * RELAY_BUFFER];
        size_t begin, end;
        bool ended; /* `from` is at its end: what is left is written, then the callback */
        int error;
};

Relay *relay_free(Relay *r) {
        if (!r)
                return NULL;
        sd_event_source_disable_unref(r->read);
        sd_event_source_disable_unref(r->write);
        sd_event_unref(r->event);
        free(r);
        return NULL;
}

static void finish(Relay *r, int error) {
        (void) sd_event_source_set_enabled(r->read, SD_EVENT_OFF);
        if (r->write)
                (void) sd_event_source_set_enabled(r->write, SD_EVENT_OFF);
        if (r->o.end)
                r->o.end(r, error, r->o.userdata);
}

/* Writes what waits. 1: all of it; 0: the other side is full. */
static int flush(Relay *r) {
        while (r->begin < r->end) {
                ssize_t n = write(r->o.to, r->buffer + r->begin, r->end - r->begin);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n < 0)
                        return -errno;
                r->begin += (size_t) n;
        }
        r->begin = r->end = 0;
        return 1;
}

static int settle(Relay *r) {
        int n = flush(r);

        if (n < 0) {
                finish(r, n);
                return 0;
        }
        if (r->write)
                (void) sd_event_source_set_enabled(r->write, n == 0 ? SD_EVENT_ON : SD_EVENT_OFF);
        if (n > 0 && r->ended) {
                finish(r, r->error);
                return 0;
        }
        (void) sd_event_source_set_enabled(r->read, n > 0 && !r->ended ? SD_EVENT_ON : SD_EVENT_OFF);
        return 0;
}

static int take(Relay *r) {
        ssize_t n;

        n = read(r->o.from, r->buffer + r->end, RELAY_BUFFER);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                r->ended = true;
                r->error = n < 0 ? -errno : 0;
                return settle(r);
        }
        r->end += r->o.filter ? r->o.filter(r->buffer + r->end, (size_t) n, r->o.userdata) : (size_t) n;
        return settle(r);
}

static int on_readable(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t events, void *userdata) {
        return take(userdata);
}

static int on_defer(_unused_ sd_event_source *s, void *userdata) {
        return take(userdata);
}

static int on_writable(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t events, void *userdata) {
        return settle(userdata);
}

int relay_new(sd_event *event, const RelayOptions *o, Relay **ret) {
        _cleanup_(relay_freep) Relay *r = calloc(1, sizeof(Relay));
        int n;

        if (!r)
                return -ENOMEM;
        r->o = *o;
        r->event = sd_event_ref(event);
        n = sd_event_add_io(event, &r->read, o->from, EPOLLIN, on_readable, r);
        if (n == -EPERM) { /* a regular file is always ready */
                n = sd_event_add_defer(event, &r->read, on_defer, r);
                if (n >= 0)
                        n = sd_event_source_set_enabled(r->read, SD_EVENT_ON);
        }
        if (n < 0)
                return n;
        n = sd_event_add_io(event, &r->write, o->to, EPOLLOUT, on_writable, r);
        if (n >= 0)
                n = sd_event_source_set_enabled(r->write, SD_EVENT_OFF);
        else if (n == -EPERM) /* a file never blocks */
                n = 0;
        if (n < 0)
                return n;
        *ret = TAKE_PTR(r);
        return 0;
}
