/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/handover.h"
#include "broker/keep.h"
#include "broker/limits.h"
#include "broker/listener.h"
#include "broker/service.h"
#include "shared/message.h"

typedef struct Guest {
        Handover *handover;
        int fd;
        sd_event_source *io, *timer;
} Guest;

struct Handover {
        Broker *broker;
        int listener; /* -EBADF: handed over, or closed for good */
        sd_event_source *io;
        Guest guests[HANDOVERS_MAX];
        unsigned wrong_tokens;
};

static void guest_close(Guest *g) {
        g->io = sd_event_source_disable_unref(g->io);
        g->timer = sd_event_source_disable_unref(g->timer);
        g->fd = safe_close(g->fd);
}

static void close_listener(Handover *h) {
        /* A service manager keeps it open: whoever connected would wait for an answer for ever, and gets a refusal instead. */
        if (service_is_managed())
                return;
        h->io = sd_event_source_disable_unref(h->io);
        h->listener = safe_close(h->listener);
}

static bool token_matches(Handover *h, const char *token) {
        const Secret *wanted = h->broker->setup->token;

        if (secret_equal(token, strlen(token), secret_data(wanted), secret_size(wanted)))
                return true;
        /* What has not even the form of one is no attempt at guessing. */
        if (strlen(token) != secret_size(wanted))
                return false;
        h->wrong_tokens = MIN(h->wrong_tokens + 1, TOKEN_TRIES_MAX);
        keep_save(h->broker->keep, h->broker);
        if (h->wrong_tokens >= TOKEN_TRIES_MAX && h->listener >= 0) {
                log_warning("session %s: %u wrong tokens; the session socket is closed for good", h->broker->setup->session,
                            TOKEN_TRIES_MAX);
                close_listener(h);
        }
        return false;
}

/* 0, or -EBADMSG with a static phrase. */
static int take_listener(Handover *h, Message *m, const char **ret_problem) {
        Broker *b = h->broker;
        _cleanup_close_ int fd = -EBADF;
        const char *token;
        JsonArray *names;
        uint32_t address;
        uint16_t port;

        *ret_problem = "out of memory";
        if (b->closed)
                *ret_problem = "the session is closed";
        else if (!streq(message_type(m), "listeners") || json_get_string(message_object(m), "token", &token) < 0)
                *ret_problem = "the message is not \"listeners\" with a token";
        else if (h->wrong_tokens >= TOKEN_TRIES_MAX || !token_matches(h, token))
                *ret_problem = "the token is wrong";
        else if (b->acceptor)
                *ret_problem = "a listener was handed over already";
        else if (json_get_array(message_object(m), "fds", &names) < 0 || json_array_get_length(names) != 1 ||
                 (fd = message_take_fd(m, "proxy")) < 0)
                *ret_problem = "the message does not carry exactly the listener \"proxy\"";
        else if (listener_check(fd, b->own_netns, &address, &port, ret_problem) >= 0) {
                keep_listener(b->keep, fd);
                int r = broker_listen(b, fd, address, port);
                if (r >= 0) {
                        TAKE_FD(fd);
                        keep_save(b->keep, b);
                        return 0;
                }
                keep_no_listener(b->keep);
                *ret_problem = "the broker cannot listen";
                return log_error_errno(r, "session %s: cannot listen: %m", b->setup->session);
        }
        return -EBADMSG;
}

static void send_ready(Handover *h, int fd) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        /* Before it is told: whoever has the answer finds that nobody else can hand one over. */
        close_listener(h);
        message_open(&w, "ready");
        int r = message_send(fd, &w, NULL, 0);
        if (r < 0) /* whoever waits for it and does not get it runs nothing; the listener then has no clients */
                log_warning_errno(r, "session %s: \"ready\" could not be sent: %m", h->broker->setup->session);
}

/* One that waited and gave up has nothing to hand over any more, though what it sent can be read. */
static bool has_gone(int fd) {
        struct pollfd p = {.fd = fd, .events = POLLRDHUP};

        return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static int on_message(_unused_ sd_event_source *s, int fd, _unused_ uint32_t revents, void *userdata) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;
        Guest *g = userdata;
        Handover *h = g->handover;
        const char *phrase = NULL;

        int r = message_receive(fd, &m, &problem);
        if (r == -EAGAIN)
                return 0;
        if (r >= 0 && has_gone(fd))
                r = -ECONNRESET;
        if (r >= 0) {
                r = take_listener(h, m, &phrase);
                if (r >= 0)
                        send_ready(h, fd);
        }
        if (r < 0 && r != -ECONNRESET) {
                if (!phrase)
                        phrase = problem ? problem : strerror(-r);
                log_warning("session %s: a hand-over was refused: %s", h->broker->setup ? h->broker->setup->session : "-", phrase);
                (void) message_reply_error(fd, phrase);
        }
        guest_close(g);
        broker_check_idle(h->broker);
        return 0;
}

static int on_timeout(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        guest_close(userdata);
        return 0;
}

static int on_connection(_unused_ sd_event_source *s, int listener, _unused_ uint32_t revents, void *userdata) {
        Handover *h = userdata;
        Guest *g = NULL;

        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return 0;
        for (size_t i = 0; i < HANDOVERS_MAX && !g; i++)
                if (h->guests[i].fd < 0)
                        g = &h->guests[i];
        if (!g) {
                (void) message_reply_error(fd, "too many connections to the session socket");
                safe_close(fd);
                return 0;
        }
        g->fd = fd;
        int r = sd_event_add_io(h->broker->event, &g->io, fd, EPOLLIN, on_message, g);
        if (r >= 0)
                r = sd_event_add_time_relative(h->broker->event, &g->timer, CLOCK_MONOTONIC, HANDOVER_TIMEOUT_USEC, USEC_PER_SEC,
                                               on_timeout, g);
        if (r >= 0 && !h->broker->setup)
                r = sd_event_source_set_enabled(g->io, SD_EVENT_OFF);
        if (r < 0)
                guest_close(g);
        return 0;
}

int handover_new(Broker *b, int fd, Handover **ret) {
        Handover *h = calloc(1, sizeof(Handover));
        if (!h) {
                safe_close(fd);
                return -ENOMEM;
        }
        h->broker = b;
        h->listener = fd;
        for (size_t i = 0; i < HANDOVERS_MAX; i++)
                h->guests[i] = (Guest){.handover = h, .fd = -EBADF};
        int r = fd_nonblock(fd, true);
        if (r >= 0)
                r = sd_event_add_io(b->event, &h->io, fd, EPOLLIN, on_connection, h);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(h->io, ACCEPTS_USEC, ACCEPTS_MAX);
        if (r < 0) {
                handover_free(h);
                return r;
        }
        *ret = h;
        return 0;
}

Handover *handover_free(Handover *h) {
        if (!h)
                return NULL;
        for (size_t i = 0; i < HANDOVERS_MAX; i++)
                guest_close(&h->guests[i]);
        sd_event_source_disable_unref(h->io);
        safe_close(h->listener);
        return mfree(h);
}

unsigned handover_wrong_tokens(const Handover *h) {
        return h ? h->wrong_tokens : 0;
}

void handover_begin(Handover *h) {
        for (size_t i = 0; i < HANDOVERS_MAX; i++)
                if (h->guests[i].io && sd_event_source_set_enabled(h->guests[i].io, SD_EVENT_ON) < 0)
                        guest_close(&h->guests[i]);
}

void handover_end(Handover *h) {
        for (size_t i = 0; i < HANDOVERS_MAX; i++)
                guest_close(&h->guests[i]);
        close_listener(h);
}

void handover_resume(Handover *h, unsigned wrong_tokens, bool handed_over) {
        h->wrong_tokens = wrong_tokens;
        if (handed_over || wrong_tokens >= TOKEN_TRIES_MAX)
                close_listener(h);
}
