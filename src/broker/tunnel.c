/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "broker/broker.h"
#include "broker/limits.h"
#include "broker/pipes.h"
#include "broker/tunnel.h"

/* Splices of one direction, and bytes, before others get their turn. */
#define TURNS_MAX 16U
#define TURN_BYTES (4U << 20)

/* Edge-triggered: the loop is told once of each change, and dispatches one source a turn. Level-triggered, thousands of tunnels
 * that have something to do at once would all be reported again at every turn. */
#define EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/* The unit of the fallback without pipes: when the process has no descriptors left. */
#define BOUNCE_SIZE (16U * 1024U)

typedef struct Flow {
        int from, to;
        Pipe pipe;
        size_t in_pipe;
        char *buffer; /* bytes to send before anything else: what came with the CONNECT head, or a bounced piece */
        size_t size, done;
        size_t counted; /* of the buffer, in broker_hold() */
        bool end;        /* of `from` was seen */
        bool shut;       /* and passed on: this direction is over */
        bool wants_room; /* something is held that `to` did not take yet: nothing is read meanwhile */
        bool more;       /* stopped for the sake of others, not for want of bytes or room */
        ClientHello *hello; /* the first message is still looked at */
        size_t looking;  /* what it is counted with, in broker_hold() */
        bool waiting;    /* the buffer waits for what is found */
        Connection *c;   /* for the log, with it */
        uint64_t total;
} Flow;

struct Tunnel {
        Connection *connection;
        int upstream;
        sd_event_source *client_io, *upstream_io, *idle;
        Flow up, down;
        size_t established_size; /* our own bytes at the beginning of `down` */
        usec_t active;
};

static void free_buffer(Broker *b, Flow *f) {
        broker_release(b, f->counted);
        f->buffer = mfree(f->buffer);
        f->size = f->done = f->counted = 0;
}

static void stop_looking(Broker *b, Flow *f) {
        broker_release(b, f->looking);
        f->hello = client_hello_free(f->hello);
        f->looking = 0;
        f->waiting = false;
}

Tunnel *tunnel_free(Tunnel *t) {
        if (!t)
                return NULL;
        sd_event_source_disable_unref(t->client_io);
        sd_event_source_disable_unref(t->upstream_io);
        sd_event_source_disable_unref(t->idle);
        for (Flow *f = &t->up;; f = &t->down) {
                pipe_pool_give(&t->connection->broker->pipes, &f->pipe, f->in_pipe == 0);
                free_buffer(t->connection->broker, f);
                stop_looking(t->connection->broker, f);
                if (f == &t->down)
                        break;
        }
        safe_close(t->upstream);
        return mfree(t);
}

void tunnel_counts(const Tunnel *t, uint64_t *ret_up, uint64_t *ret_down) {
        *ret_up = t->up.total;
        *ret_down = t->down.total > t->established_size ? t->down.total - t->established_size : 0;
}

/* 1: nothing is held, 0: `to` has no room, negative errno. */
static int flush(Broker *b, Flow *f) {
        if (f->waiting)
                return 1;
        while (f->done < f->size) {
                ssize_t n = send(f->to, f->buffer + f->done, f->size - f->done, MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                f->done += (size_t) n;
                f->total += (size_t) n;
        }
        if (f->buffer)
                free_buffer(b, f);
        while (f->in_pipe > 0) {
                ssize_t n = splice(f->pipe.read, NULL, f->to, NULL, f->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                if (n == 0)
                        return -EPIPE;
                f->in_pipe -= (size_t) n;
                f->total += (size_t) n;
        }
        pipe_pool_give(&b->pipes, &f->pipe, true);
        return 1;
}

/* Without a pipe: through memory, a piece at a time. */
static ssize_t bounce(Broker *b, Flow *f) {
        if (!broker_hold(b, BOUNCE_SIZE))
                return -ENOBUFS;
        f->counted = BOUNCE_SIZE;
        f->buffer = malloc(BOUNCE_SIZE);
        ssize_t n = f->buffer ? recv(f->from, f->buffer, BOUNCE_SIZE, 0) : -1;
        if (n <= 0) {
                int r = n < 0 ? negative_errno() : 0;
                free_buffer(b, f);
                return r;
        }
        f->size = (size_t) n;
        f->done = 0;
        return n;
}

static ssize_t fill(Broker *b, Flow *f);

/* What the first message turned out to be. -EKEYREJECTED: it goes no further. */
static int settle(Broker *b, Flow *f, ClientHelloFinding found) {
        bool good = found == CLIENT_HELLO_SAME || found == CLIENT_HELLO_SSH, enforced = f->hello->enforce;
        const char *name = f->hello->name;

        if (!good)
                connection_log(f->c, enforced ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%sthe tunnel's first message %s%s%s", enforced ? "closed: " : "",
                               client_hello_words(found), *name ? ": " : "", name);
        stop_looking(b, f);
        return good || !enforced ? 0 : -EKEYREJECTED;
}

/* Looks at what was appended to the buffer. 0, or a negative errno. */
static int look(Broker *b, Flow *f, const char *data, size_t size) {
        if (f->looking == 0 && !broker_hold(b, CLIENT_HELLO_MAX)) {
                if (f->hello->enforce)
                        return -ENOBUFS;
                stop_looking(b, f);
                return 0;
        }
        f->looking = CLIENT_HELLO_MAX;
        int found = client_hello_feed(f->hello, data, size);
        if (found < 0)
                return found;
        f->waiting = found == CLIENT_HELLO_MORE && f->hello->enforce;
        return found == CLIENT_HELLO_MORE ? 0 : settle(b, f, (ClientHelloFinding) found);
}

/* Reads through memory while the first message is looked at; unless it waits for the finding, what is read goes on at once. A buffer that
 * waits holds less than CLIENT_HELLO_MAX. */
static ssize_t inspect(Broker *b, Flow *f) {
        if (!f->buffer) {
                if (!broker_hold(b, CLIENT_HELLO_MAX + BOUNCE_SIZE)) {
                        if (f->hello->enforce)
                                return -ENOBUFS;
                        stop_looking(b, f); /* a line for the log is no reason to end it */
                        return fill(b, f);
                }
                f->counted = CLIENT_HELLO_MAX + BOUNCE_SIZE;
                f->buffer = malloc(f->counted);
                f->size = f->done = 0;
        }
        ssize_t n = f->buffer ? recv(f->from, f->buffer + f->size, MIN((size_t) BOUNCE_SIZE, f->counted - f->size), 0) : -1;
        if (n <= 0) {
                int r = n < 0 ? negative_errno() : f->waiting ? settle(b, f, CLIENT_HELLO_MALFORMED) : 0;
                if (f->size == 0)
                        free_buffer(b, f);
                return r;
        }
        f->size += (size_t) n;
        int r = look(b, f, f->buffer + f->size - (size_t) n, (size_t) n);
        return r < 0 ? r : n;
}

/* > 0: bytes are held now, 0: end of file, -EAGAIN: nothing there, or another negative errno. */
static ssize_t fill(Broker *b, Flow *f) {
        ssize_t n;

        if (f->hello)
                return inspect(b, f);
        if (f->pipe.read < 0 && pipe_pool_take(&b->pipes, &f->pipe) < 0)
                return bounce(b, f);
        do
                n = splice(f->from, NULL, f->pipe.write, NULL, PIPE_LARGE_SIZE, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        while (n < 0 && errno == EINTR);
        if (n > 0) {
                f->in_pipe = (size_t) n;
                return n;
        }
        int r = n < 0 ? -errno : 0;
        pipe_pool_give(&b->pipes, &f->pipe, true);
        return r;
}

static int pass_end(Flow *f) {
        f->shut = true;
        /* ENOTCONN: that side went already; its other direction says how. */
        return shutdown(f->to, SHUT_WR) < 0 && errno != ENOTCONN ? -errno : 0;
}

/* Moves what can be moved now. Negative errno: one side failed. */
static int move(Broker *b, Flow *f) {
        const uint64_t from = f->total;

        f->more = false;
        for (unsigned turn = 0; turn < TURNS_MAX && f->total - from < TURN_BYTES && !f->shut; turn++) {
                int r = flush(b, f);
                f->wants_room = r == 0;
                if (r <= 0)
                        return r;
                if (f->end)
                        return pass_end(f);
                ssize_t n = fill(b, f);
                if (n == -EAGAIN)
                        return 0;
                if (n < 0)
                        return (int) n;
                if (n == 0)
                        f->end = true;
        }
        f->more = f->wants_room = !f->shut;
        return 0;
}

static void over(Tunnel *t, int error) {
        Connection *c = t->connection;

        if (error < 0) {
                /* A reset, not a clean end: SO_LINGER with no time makes close() send one. */
                struct linger reset = {.l_onoff = 1};
                (void) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
                (void) setsockopt(t->upstream, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        connection_tunnel_done(c, error);
}

/* A reset counts at once, also on a side that is neither read nor written at the moment. */
static int check_error(int fd, uint32_t revents) {
        int error = 0;
        socklen_t size = sizeof(error);

        if (!(revents & EPOLLERR))
                return 0;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? -errno : -error;
}

static int on_io(_unused_ sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Tunnel *t = userdata;
        Broker *b = t->connection->broker;
        bool client = fd == t->connection->fd;
        Flow *out = client ? &t->up : &t->down, *in = client ? &t->down : &t->up; /* as seen from fd */

        t->active = now_monotonic();
        int r = check_error(fd, revents);
        if (r >= 0 && !out->wants_room && (revents & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)))
                r = move(b, out);
        if (r >= 0 && in->wants_room && (revents & (EPOLLOUT | EPOLLHUP)))
                r = move(b, in);
        /* Set anew, an edge-triggered source looks again. */
        if (r >= 0 && t->up.more)
                r = sd_event_source_set_io_events(t->upstream_io, EVENTS);
        if (r >= 0 && t->down.more)
                r = sd_event_source_set_io_events(t->client_io, EVENTS);
        if (r < 0 || (t->up.shut && t->down.shut))
                over(t, r);
        return 0;
}

static usec_t idle_usec(const Tunnel *t) {
        return t->connection->broker->tunnel_idle_usec ?: TUNNEL_IDLE_USEC;
}

static int on_idle(sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Tunnel *t = userdata;
        usec_t now = now_monotonic(), end = t->active + idle_usec(t);

        if (now >= end) {
                over(t, -ETIMEDOUT);
                return 0;
        }
        /* Armed anew only here: a busy tunnel does not touch its timer. */
        int r = sd_event_source_set_time(s, end);
        if (r >= 0)
                r = sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        if (r < 0)
                over(t, r);
        return 0;
}

static int watch(Tunnel *t) {
        sd_event *event = t->connection->broker->event;

        t->up.wants_room = t->up.size > 0;
        t->down.wants_room = t->down.size > 0;
        int r = sd_event_add_io(event, &t->client_io, t->connection->fd, EVENTS, on_io, t);
        if (r >= 0)
                r = sd_event_add_io(event, &t->upstream_io, t->upstream, EVENTS, on_io, t);
        if (r >= 0)
                r = sd_event_add_time(event, &t->idle, CLOCK_MONOTONIC, t->active + idle_usec(t),
                                      MIN(idle_usec(t) / 16, USEC_PER_MINUTE), on_idle, t);
        return r;
}

static char *duplicate(const char *data, size_t size) {
        char *p = malloc(size);
        return p ? memcpy(p, data, size) : NULL;
}

int tunnel_start(Connection *c, int upstream, Slice established, Tunnel **ret) {
        Tunnel *t = calloc(1, sizeof(Tunnel));
        if (!t) {
                safe_close(upstream);
                return -ENOMEM;
        }
        t->connection = c;
        t->upstream = upstream;
        t->active = now_monotonic();
        t->up = (Flow){.from = c->fd, .to = upstream, .pipe = PIPE_NONE};
        t->down = (Flow){.from = upstream, .to = c->fd, .pipe = PIPE_NONE};

        int r = 0;
        t->established_size = established.size;
        t->down.buffer = duplicate(established.data, established.size);
        t->down.size = established.size;
        if (c->in_size > 0) {
                t->up.buffer = TAKE_PTR(c->in);
                t->up.size = c->in_size;
                t->up.counted = CLIENT_BUFFER_SIZE; /* as the connection counted it */
                c->in_size = 0;
        }
        if (!t->down.buffer)
                r = -ENOMEM;
        t->up.c = c;
        t->up.hello = TAKE_PTR(c->hello);
        if (r >= 0 && t->up.hello && t->up.size > 0)
                r = look(c->broker, &t->up, t->up.buffer, t->up.size);
        if (r >= 0)
                r = watch(t);
        if (r < 0) {
                tunnel_free(t);
                return r;
        }
        *ret = t;
        return 0;
}
