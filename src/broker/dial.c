/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/epoll.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/dial.h"
#include "broker/limits.h"
#include "broker/resolve.h"
#include "shared/event-timer.h"

/* RFC 8305, section 5: how long an attempt stays alone. */
#define ATTEMPT_DELAY_USEC (250 * USEC_PER_MSEC)

/* Attempts of one dial under way: with the client two of the descriptors that a connection is counted with, and the third. A name's
 * owner chooses how many addresses it has, and how silent they are. */
#define ATTEMPTS_MAX 2U

/* Keeps a NAT's entry alive, and finds a peer that is gone. */
#define KEEPALIVE_IDLE_SEC 60

typedef struct Attempt {
        Dial *dial;
        int fd;
        sd_event_source *io;
        Address address;
} Attempt;

struct Dial {
        Broker *broker;
        DialHandler handler;
        void *userdata;
        Query *query;
        sd_event_source *later;    /* literals, and lookups that could not begin: not from within dial_start() */
        sd_event_source *deadline; /* over all addresses */
        sd_event_source *stagger;  /* the next attempt */
        bool literal;
        uint16_t port;
        const char *failure; /* a lookup that could not begin: why */
        Attempt *attempts;   /* one an address */
        size_t n, next, open;
        bool dialled; /* at least one address passed */
        char detail[192];
};

_printf_(2, 3) static void set_detail(Dial *d, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(d->detail, sizeof(d->detail), format, ap);
        va_end(ap);
}

static void attempt_close(Attempt *a) {
        if (a->fd < 0)
                return;
        a->io = sd_event_source_disable_unref(a->io);
        a->fd = safe_close(a->fd);
        a->dial->open--;
}

Dial *dial_cancel(Dial *d) {
        if (!d)
                return NULL;
        query_cancel(d->query);
        sd_event_source_disable_unref(d->later);
        sd_event_source_disable_unref(d->deadline);
        sd_event_source_disable_unref(d->stagger);
        for (size_t i = 0; i < d->n; i++)
                attempt_close(&d->attempts[i]);
        free(d->attempts);
        return mfree(d);
}

static void finish(Dial *d, DialResult result, int fd, const Address *address) {
        DialHandler handler = d->handler;
        void *userdata = d->userdata;
        Address copy = address ? *address : (Address){};
        char detail[sizeof(d->detail)];

        memcpy(detail, d->detail, sizeof(detail));
        dial_cancel(d);
        handler(userdata, result, fd, address ? &copy : NULL, detail);
}

static void connected(Dial *d, Attempt *a) {
        Address address = a->address;
        int fd = TAKE_FD(a->fd);

        a->io = sd_event_source_disable_unref(a->io);
        d->open--;
        d->detail[0] = '\0';
        finish(d, DIAL_CONNECTED, fd, &address);
}

static void failed(Dial *d, const Attempt *a, int error) {
        char text[INET6_ADDRSTRLEN];

        d->dialled = true;
        set_detail(d, "%s: %s", address_format(&a->address, text), strerror(error));
}

static void proceed(Dial *d);

static int on_connect(_unused_ sd_event_source *s, int fd, _unused_ uint32_t revents, void *userdata) {
        Attempt *a = userdata;
        Dial *d = a->dial;
        int error = 0;
        socklen_t size = sizeof(error);

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                error = errno;
        if (error == 0) {
                connected(d, a);
                return 0;
        }
        attempt_close(a);
        failed(d, a, error);
        proceed(d);
        return 0;
}

static void tune(int fd) {
        /* Small writes of an interactive protocol leave at once; best effort, as are the keepalives. */
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){KEEPALIVE_IDLE_SEC}, sizeof(int));
}

/* 1: connected already, 0: under way, negative errno. */
static int attempt_start(Dial *d, Attempt *a) {
        struct sockaddr_storage address;
        socklen_t size = address_to_sockaddr(&a->address, d->port, &address);

        a->fd = socket(a->address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
        if (a->fd < 0)
                return -errno;
        d->open++;
        tune(a->fd);
        int r = connect(a->fd, (struct sockaddr *) &address, size) < 0 ? -errno : 1;
        if (r == -EINPROGRESS)
                r = sd_event_add_io(d->broker->event, &a->io, a->fd, EPOLLOUT | EPOLLET, on_connect, a);
        if (r < 0) {
                attempt_close(a);
                return r;
        }
        return r == 1;
}

/* The judgement of the very address that is dialled next. An address that was written as a literal can be one the operator
 * lists; what a name points at is not the operator's to decide. */
static bool allowed(Dial *d, const Address *a) {
        char text[INET6_ADDRSTRLEN];
        const char *verdict = address_judge(a);

        if (!verdict || (d->literal && setup_internal_allowed(d->broker->setup, a)))
                return true;
        if (!d->dialled)
                set_detail(d, "%s is %s", address_format(a, text), verdict);
        return false;
}

static int on_stagger(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        proceed(userdata);
        return 0;
}

static void arm_stagger(Dial *d) {
        if (d->stagger)
                (void) timer_again(d->stagger, ATTEMPT_DELAY_USEC);
        else /* without the timer the next attempt begins when this one fails */
                (void) sd_event_add_time_relative(d->broker->event, &d->stagger, CLOCK_MONOTONIC, ATTEMPT_DELAY_USEC, USEC_PER_MSEC,
                                                  on_stagger, d);
}

/* The one that has had the most time gives its place up. */
static void make_room(Dial *d) {
        for (size_t i = 0; d->open >= ATTEMPTS_MAX && i < d->next; i++)
                if (d->attempts[i].fd >= 0) {
                        attempt_close(&d->attempts[i]);
                        failed(d, &d->attempts[i], ETIMEDOUT);
                }
}

/* Starts the next attempt, or ends the dial when there is none and none is under way. May free d. */
static void proceed(Dial *d) {
        while (d->next < d->n) {
                Attempt *a = &d->attempts[d->next++];

                if (!allowed(d, &a->address))
                        continue;
                d->dialled = true;
                make_room(d);
                int r = attempt_start(d, a);
                if (r > 0) {
                        connected(d, a);
                        return;
                }
                if (r == 0) {
                        if (d->next < d->n)
                                arm_stagger(d);
                        return;
                }
                failed(d, a, -r);
        }
        if (d->open == 0)
                finish(d, d->dialled ? DIAL_UNREACHABLE : DIAL_NOT_PUBLIC, -EBADF, NULL);
}

static int on_deadline(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Dial *d = userdata;

        set_detail(d, "no connection within %u s", (unsigned) (DIAL_TIMEOUT_USEC / USEC_PER_SEC));
        finish(d, DIAL_UNREACHABLE, -EBADF, NULL);
        return 0;
}

static void dial_addresses(Dial *d, const Address *addresses, size_t n) {
        int r = -ENOMEM;

        d->attempts = calloc(n, sizeof(Attempt));
        if (d->attempts) {
                d->n = n;
                for (size_t i = 0; i < n; i++)
                        d->attempts[i] = (Attempt){.dial = d, .fd = -EBADF, .address = addresses[i]};
                r = sd_event_add_time_relative(d->broker->event, &d->deadline, CLOCK_MONOTONIC, DIAL_TIMEOUT_USEC,
                                               10 * USEC_PER_MSEC, on_deadline, d);
        }
        if (r < 0) {
                set_detail(d, "%s", strerror(-r));
                finish(d, DIAL_UNREACHABLE, -EBADF, NULL);
                return;
        }
        proceed(d);
}

static void on_resolved(void *userdata, ResolveResult result, const Address *addresses, size_t n, const char *detail) {
        Dial *d = userdata;

        d->query = NULL;
        if (result == RESOLVE_DONE) {
                dial_addresses(d, addresses, n);
                return;
        }
        set_detail(d, "%s", detail);
        finish(d, result == RESOLVE_TIMEOUT ? DIAL_RESOLVE_TIMEOUT : DIAL_NOT_RESOLVED, -EBADF, NULL);
}

static int on_later(_unused_ sd_event_source *s, void *userdata) {
        Dial *d = userdata;

        if (d->failure) {
                set_detail(d, "%s", d->failure);
                finish(d, DIAL_NOT_RESOLVED, -EBADF, NULL);
                return 0;
        }
        Address address = d->attempts[0].address;
        d->attempts = mfree(d->attempts);
        d->n = 0;
        dial_addresses(d, &address, 1);
        return 0;
}

static int start_literal(Dial *d, const Host *host) {
        Address address;

        int r = address_parse(host->name, &address);
        if (r < 0)
                return r;
        d->literal = true;
        d->attempts = calloc(1, sizeof(Attempt));
        if (!d->attempts)
                return -ENOMEM;
        d->attempts[0] = (Attempt){.dial = d, .fd = -EBADF, .address = address};
        d->n = 1;
        return sd_event_add_defer(d->broker->event, &d->later, on_later, d);
}

int dial_start(Broker *b, const Host *host, uint16_t port, DialHandler handler, void *userdata, Dial **ret) {
        _cleanup_(dial_cancelp) Dial *d = calloc(1, sizeof(Dial));
        if (!d)
                return -ENOMEM;
        d->broker = b;
        d->port = port;
        d->handler = handler;
        d->userdata = userdata;

        int r;
        if (host->kind != HOST_NAME)
                r = start_literal(d, host);
        else {
                r = resolver_start(b->resolver, host->name, on_resolved, d, &d->query);
                if (r == -EBUSY || r == -EINVAL || r == -EAGAIN) {
                        d->failure = r == -EBUSY    ? "too many lookups are pending"
                                     : r == -EINVAL ? "this is not a name"
                                                    : "no thread for the lookup";
                        r = sd_event_add_defer(b->event, &d->later, on_later, d);
                }
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(d);
        return 0;
}
