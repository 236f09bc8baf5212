/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <malloc.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/limits.h"
#include "broker/request.h"
#include "broker/socks.h"
#include "broker/tunnel.h"
#include "shared/event-timer.h"

/* Finds a session's process that went without a reset: its kernel forgets the connection after a minute, and answers the next probe
 * with one. */
#define CLIENT_KEEPALIVE_IDLE_SEC 30
#define CLIENT_KEEPALIVE_INTERVAL_SEC 10
#define CLIENT_KEEPALIVE_PROBES 3

#define TRIM_HELD (8U << 20)

#define ESTABLISHED "HTTP/1.1 200 Connection Established\r\n\r\n"

void connection_set_subject(Connection *c, const char *format, ...) {
        free(c->subject);
        c->subject = string_format_own(format); /* NULL: the log then says "a request" */
}

static const char *session_name(const Connection *c) {
        return c->broker->setup ? c->broker->setup->session : "-";
}

_printf_(3, 0) static void log_text(Connection *c, LogLevel level, const char *format, va_list ap) {
        _cleanup_free_ char *text = string_format_list(format, ap);

        if (text)
                log_line(level, "session %s: %s: %s", session_name(c), c->subject ? c->subject : "a request", text);
}

void connection_log(Connection *c, LogLevel level, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        log_text(c, level, format, ap);
        va_end(ap);
}

void connection_log_refusal(Connection *c, const char *format, ...) {
        va_list ap;

        c->broker->n_refused++;
        if (!refusal_log_take(&c->broker->refusal_log, session_name(c), now_monotonic()))
                return;
        va_start(ap, format);
        log_text(c, LOG_LEVEL_INFO, format, ap);
        va_end(ap);
}

static void log_tunnel_end(Connection *c, const char *how) {
        uint64_t up, down;

        tunnel_counts(c->tunnel, &up, &down);
        connection_log(c, LOG_LEVEL_INFO, "%s after %llu s, %llu bytes up, %llu bytes down", how,
                       (unsigned long long) ((now_monotonic() - c->began) / USEC_PER_SEC), (unsigned long long) up,
                       (unsigned long long) down);
}

static void release_buffer(Connection *c) {
        if (!c->in)
                return;
        c->in = mfree(c->in);
        c->in_size = c->head_size = c->scanned = 0;
        broker_release(c->broker, CLIENT_BUFFER_SIZE);
}

Connection *connection_free(Connection *c) {
        if (!c)
                return NULL;
        Broker *b = c->broker;

        if (c->exchange)
                c->exchange = exchange_cancel(c->exchange);
        if (c->tunnel) {
                tunnel_free(c->tunnel);
                b->n_tunnels--;
        }
        dial_cancel(c->dial);
        client_hello_free(c->hello);
        sd_event_source_disable_unref(c->io);
        sd_event_source_disable_unref(c->timer);
        release_buffer(c);
        free(c->out);
        free(c->subject);
        safe_close(c->fd);
        if (c->next)
                c->next->previous = c->previous;
        if (c->previous)
                c->previous->next = c->next;
        else
                b->connections = c->next;
        b->n_connections--;
        free(c);
        if (b->n_connections == 0 && b->held_most > TRIM_HELD) {
                b->held_most = 0;
                (void) malloc_trim(0); /* what a busy hour took is given back */
        }
        broker_check_idle(b);
        return NULL;
}

/* Freed from the loop: whoever calls may still hold c. */
static void close_soon(Connection *c) {
        c->state = CONNECTION_CLOSING;
        (void) timer_again(c->timer, 0);
}

/* Edge-triggered, and set anew after each event: the loop, which dispatches one source a turn, is then told of each once, and not
 * of thousands again and again. Setting it looks at once, so nothing is missed; when all that came was read, there is nothing to miss. */
static void watch(Connection *c, uint32_t events) {
        if (events == EPOLLIN)
                events = CONNECTION_EVENTS;
        if (events == c->watched)
                return;
        int r = sd_event_source_set_io_events(c->io, events | EPOLLET);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->io, SD_EVENT_ON);
        c->watched = events;
        if (r < 0)
                close_soon(c);
}

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata);
static int on_timer(sd_event_source *s, uint64_t usec, void *userdata);

static int add_sources(Connection *c) {
        sd_event *event = c->broker->event;

        int r = sd_event_add_time_relative(event, &c->timer, CLOCK_MONOTONIC, IDLE_TIMEOUT_USEC, 50 * USEC_PER_MSEC, on_timer, c);
        c->watched = CONNECTION_EVENTS;
        return r < 0 ? r : sd_event_add_io(event, &c->io, c->fd, c->watched | EPOLLET, on_io, c);
}

/* The bytes of the request's head are used up. */
static void consume_head(Connection *c) {
        c->in_size -= c->head_size;
        if (c->in_size > 0)
                memmove(c->in, c->in + c->head_size, c->in_size);
        c->head_size = c->scanned = 0;
        if (c->in_size == 0)
                release_buffer(c);
}

/* Goes on with what is in c->in, or waits for more. Room to write is there at once, so EPOLLOUT means "look at c->in from the
 * loop". */
static void read_next(Connection *c) {
        c->state = CONNECTION_READING;
        c->subject = mfree(c->subject);
        c->body_unread = c->request_was_head = c->request_keep_alive = false;
        c->body_size = UINT64_MAX;
        c->scanned = 0;
        if (c->in && c->in_size == 0)
                release_buffer(c);
        if (c->protocol != CONNECTION_SOCKS5) /* whose messages have one limit together */
                (void) timer_again(c->timer, c->in_size > 0 ? HEAD_TIMEOUT_USEC : IDLE_TIMEOUT_USEC);
        watch(c, c->in_size > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* c->out, which is NULL when there was no memory for it. */
static int write_out(Connection *c, size_t size) {
        if (!c->out) {
                connection_free(c);
                return -ENOMEM;
        }
        c->out_size = size;
        c->out_done = 0;
        c->state = CONNECTION_WRITING;
        if (c->protocol != CONNECTION_SOCKS5 || !c->keep_alive)
                (void) timer_again(c->timer, ANSWER_TIMEOUT_USEC);
        watch(c, EPOLLOUT);
        return 0;
}

int connection_answer(Connection *c, unsigned status, const char *reason, const char *body, const char *extra, bool keep_alive) {
        const char *text = body ? body : reason;

        /* A body that is all there goes with its head, and the connection stays of use. */
        if (c->body_unread && c->head_size > 0 && c->body_size <= c->in_size - c->head_size) {
                c->head_size += (size_t) c->body_size;
                c->body_unread = false;
        }
        c->keep_alive = keep_alive && !c->body_unread && !c->broker->closed;
        consume_head(c);
        int n = asprintf(
                &c->out,
                "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nConnection: %s\r\n%s\r\n%s%s",
                status, reason, strlen(text) + 1, c->keep_alive ? "keep-alive" : "close", extra ? extra : "",
                c->request_was_head ? "" : text, c->request_was_head ? "" : "\n");
        if (n < 0)
                c->out = NULL;
        return write_out(c, n < 0 ? 0 : (size_t) n);
}

int connection_send(Connection *c, const void *data, size_t size, bool keep_alive) {
        c->keep_alive = keep_alive && !c->broker->closed;
        consume_head(c);
        c->out = malloc(size);
        if (c->out)
                memcpy(c->out, data, size);
        return write_out(c, size);
}

void connection_exchange_done(Connection *c, bool keep_alive) {
        if (!keep_alive || c->broker->closed)
                connection_free(c);
        else
                read_next(c);
}

void connection_tunnel_done(Connection *c, int error) {
        log_tunnel_end(c, error == 0 ? "ended" : error == -ETIMEDOUT ? "ended for want of traffic" : error == -EKEYREJECTED ? "closed" : strerror(-error));
        connection_free(c);
}

void connection_wait_for_dial(Connection *c) {
        consume_head(c);
        c->state = CONNECTION_DIALING;
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_OFF); /* the dial has its own limits */
        watch(c, 0);                                                /* a client that goes is noticed all the same */
}

void connection_start_tunnel(Connection *c, int fd) {
        c->io = sd_event_source_disable_unref(c->io);
        c->timer = sd_event_source_disable_unref(c->timer);
        c->state = CONNECTION_BUSY;
        c->began = now_monotonic();
        Slice established = c->protocol == CONNECTION_SOCKS5 ? socks_established() : (Slice){ESTABLISHED, STRLEN(ESTABLISHED)};
        int r = tunnel_start(c, fd, established, &c->tunnel);
        if (r < 0) {
                if (r != -EKEYREJECTED) /* it has been told */
                        connection_log(c, LOG_LEVEL_WARNING, "no tunnel: %s", strerror(-r));
                connection_free(c);
                return;
        }
        c->broker->n_tunnels++;
        release_buffer(c);
}

void connection_read_more(Connection *c) {
        watch(c, EPOLLIN);
}

static void process_head(Connection *c) {
        const char *problem = NULL;
        Http1Head head;

        ssize_t n = http1_find_head_end(c->in, c->in_size, &c->scanned);
        if (n == 0 && c->in_size < CLIENT_BUFFER_SIZE) {
                connection_read_more(c);
                return;
        }
        if (n > 0) {
                c->head_size = (size_t) n;
                if (http1_parse_request(c->in, (size_t) n, &head, &problem) >= 0) {
                        request_decide(c, &head);
                        return;
                }
                n = -EBADMSG;
        } else
                c->head_size = c->in_size;
        c->body_unread = true; /* where the next request would begin nobody knows */
        if (n == -EBADMSG)
                request_refuse(c, ANSWER_MALFORMED, problem ? problem : "the request head is malformed", NULL);
        else
                request_refuse(c, ANSWER_HEAD_TOO_LARGE, NULL, NULL);
}

static void process(Connection *c) {
        if (c->protocol == CONNECTION_UNDECIDED)
                c->protocol = socks_begins(c->in[0]) ? CONNECTION_SOCKS5 : CONNECTION_HTTP;
        if (c->protocol == CONNECTION_SOCKS5)
                socks_process(c);
        else
                process_head(c);
}

static void on_readable(Connection *c) {
        Broker *b = c->broker;

        if (!c->in) {
                bool room = broker_hold(b, CLIENT_BUFFER_SIZE);
                c->in = room ? malloc(CLIENT_BUFFER_SIZE) : NULL;
                if (!c->in) {
                        if (room)
                                broker_release(b, CLIENT_BUFFER_SIZE);
                        c->body_unread = true;
                        request_refuse(c, ANSWER_TOO_MANY, NULL, NULL);
                        return;
                }
        }
        size_t room = CLIENT_BUFFER_SIZE - c->in_size;
        ssize_t n = recv(c->fd, c->in + c->in_size, room, 0);
        if (n == (ssize_t) room) /* there may be more */
                c->watched = 0;
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
                if (c->in_size == 0)
                        release_buffer(c);
                watch(c, EPOLLIN);
                return;
        }
        if (n <= 0) {
                if (c->in_size > 0)
                        connection_log(c, LOG_LEVEL_DEBUG, "the client went within a request head");
                connection_free(c);
                return;
        }
        if (c->in_size == 0 && c->protocol != CONNECTION_SOCKS5) /* the limit is for the whole head, however slowly it drips */
                (void) timer_again(c->timer, HEAD_TIMEOUT_USEC);
        c->in_size += (size_t) n;
        process(c);
}

static void on_writable(Connection *c) {
        ssize_t n = send(c->fd, c->out + c->out_done, c->out_size - c->out_done, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
                connection_free(c);
                return;
        }
        if (n > 0)
                c->out_done += (size_t) n;
        if (c->out_done < c->out_size) {
                watch(c, EPOLLOUT);
                return;
        }
        c->out = mfree(c->out);
        c->out_size = c->out_done = 0;
        if (c->keep_alive) {
                read_next(c);
                return;
        }
        release_buffer(c);
        c->state = CONNECTION_DRAINING;
        (void) shutdown(c->fd, SHUT_WR);
        (void) timer_again(c->timer, DRAIN_TIMEOUT_USEC);
        watch(c, EPOLLIN);
}

static void drain(Connection *c) {
        char dropped[4096];

        ssize_t n = recv(c->fd, dropped, sizeof(dropped), 0);
        c->watched = 0;
        if (n > 0)
                c->drained += (size_t) n;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || c->drained > DRAIN_MAX)
                connection_free(c);
        else
                watch(c, EPOLLIN);
}

static int on_io(_unused_ sd_event_source *s, _unused_ int fd, uint32_t revents, void *userdata) {
        Connection *c = userdata;

        if (c->exchange || revents != EPOLLIN)
                c->watched = 0;
        if (c->exchange) {
                exchange_on_client(c->exchange, revents);
                return 0;
        }
        switch (c->state) {
        case CONNECTION_READING:
                if (revents & EPOLLOUT)
                        process(c);
                else
                        on_readable(c);
                break;
        case CONNECTION_DIALING:
                if (revents & (EPOLLHUP | EPOLLERR)) {
                        connection_log(c, LOG_LEVEL_INFO, "the client went before there was a connection");
                        connection_free(c);
                }
                break;
        case CONNECTION_WRITING:
                on_writable(c);
                break;
        case CONNECTION_DRAINING:
                drain(c);
                break;
        case CONNECTION_BUSY:
        case CONNECTION_CLOSING:
                break;
        }
        return 0;
}

static int on_timer(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Connection *c = userdata;

        if (c->exchange)
                exchange_on_timer(c->exchange);
        else if (c->protocol == CONNECTION_SOCKS5 && c->state == CONNECTION_READING)
                socks_time_out(c);
        else if (c->state == CONNECTION_READING && c->in_size > 0) {
                c->body_unread = true;
                c->head_size = c->in_size;
                request_refuse(c, ANSWER_HEAD_TIMEOUT, NULL, NULL);
        } else
                connection_free(c);
        return 0;
}

static void tune(int fd) {
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){CLIENT_KEEPALIVE_IDLE_SEC}, sizeof(int));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){CLIENT_KEEPALIVE_INTERVAL_SEC}, sizeof(int));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){CLIENT_KEEPALIVE_PROBES}, sizeof(int));
}

static bool full(Broker *b) {
        usec_t now = now_monotonic();

        if (b->n_connections < b->connections_max)
                return false;
        if (b->full_logged == 0 || now - b->full_logged >= USEC_PER_MINUTE) {
                b->full_logged = now;
                log_warning("session %s: more than %zu connections at once; new ones are closed", b->setup->session,
                            b->connections_max);
        }
        return true;
}

void connection_new(Broker *b, int fd) {
        Connection *c;

        if (b->closed || full(b) || !(c = calloc(1, sizeof(Connection)))) {
                safe_close(fd);
                return;
        }
        c->broker = b;
        c->fd = fd;
        c->next = b->connections;
        if (c->next)
                c->next->previous = c;
        b->connections = c;
        b->n_connections++;
        b->n_accepted++;
        tune(fd);
        int r = add_sources(c);
        if (r < 0) {
                log_warning_errno(r, "session %s: a connection could not be watched: %m", b->setup->session);
                connection_free(c);
        }
}
