/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "basic/base64.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "broker/acceptor.h"
#include "broker/broker.h"
#include "broker/control.h"
#include "broker/exchange.h"
#include "broker/grants.h"
#include "broker/handover.h"
#include "broker/keep.h"
#include "broker/limits.h"
#include "broker/listener.h"
#include "broker/resolve.h"
#include "broker/service.h"
#include "shared/event-timer.h"

/* Descriptors kept for everything that is no connection: sockets, lookups, the spool, trust stores. */
#define DESCRIPTORS_RESERVED 256U

/* Client, upstream, and room for a pipe in flight in every second tunnel (a tunnel that gets none copies) or for a second attempt of
 * a dial. */
#define DESCRIPTORS_PER_CONNECTION 3U

static size_t connections_max(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= DESCRIPTORS_RESERVED + DESCRIPTORS_PER_CONNECTION)
                return 1;
        return MIN((size_t) CONNECTIONS_MAX, (size_t) (limit.rlim_cur - DESCRIPTORS_RESERVED) / DESCRIPTORS_PER_CONNECTION);
}

static int get_own_netns(uint64_t *ret) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return fd < 0 ? -errno : netns_cookie(fd, ret);
}

static usec_t idle_usec(const Broker *b) {
        return b->idle_usec ?: BROKER_IDLE_USEC;
}

static bool is_idle(const Broker *b) {
        return !control_is_connected(b->control) && !b->acceptor && b->n_connections == 0;
}

static int on_idle(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Broker *b = userdata;

        if (!is_idle(b))
                return 0;
        log_info("no supervisor, no listener and no connection for %u s: leaving", (unsigned) (idle_usec(b) / USEC_PER_SEC));
        return sd_event_exit(b->event, 0);
}

void broker_check_idle(Broker *b) {
        if (!b->idle || !is_idle(b))
                return; /* the timer looks again when it fires */
        (void) timer_again(b->idle, idle_usec(b));
}

int broker_new(int control, int session, uid_t control_uid, Broker **ret) {
        _cleanup_close_ int control_fd = control, session_fd = session;
        _cleanup_(broker_freep) Broker *b = calloc(1, sizeof(Broker));
        int r;

        if (!b)
                return -ENOMEM;
        b->connections_max = connections_max();
        r = sd_event_new(&b->event);
        if (r >= 0)
                r = get_own_netns(&b->own_netns);
        if (r >= 0)
                r = resolver_new(b->event, &b->resolver);
        if (r >= 0)
                r = grants_new(&b->grants);
        if (r >= 0)
                r = sd_event_add_time_relative(b->event, &b->idle, CLOCK_MONOTONIC, BROKER_IDLE_USEC, USEC_PER_SEC, on_idle, b);
        if (r >= 0)
                r = handover_new(b, TAKE_FD(session_fd), &b->handover);
        if (r >= 0)
                r = control_new(b, TAKE_FD(control_fd), control_uid, &b->control);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(b);
        return 0;
}

static void free_connections(Broker *b, bool tunnels_too) {
        for (Connection *c = b->connections, *next; c; c = next) {
                next = c->next;
                if (tunnels_too || !c->tunnel)
                        connection_free(c);
        }
}

Broker *broker_free(Broker *b) {
        if (!b)
                return NULL;
        b->closed = true; /* for what is freed; a keep that is whole is not told */
        b->idle = sd_event_source_disable_unref(b->idle);
        if (keep_is_whole(b->keep))
                acceptor_leave(b->acceptor); /* the unit is restarted, or stopped and the service manager lets go of it */
        else
                acceptor_free(b->acceptor);
        free_connections(b, true);
        handover_free(b->handover);
        control_free(b->control);
        if (b->setup) {
                refusal_log_sum_up(&b->refusal_log, b->setup->session);
                exchange_forget_upstreams(b);
        }
        resolver_free(b->resolver);
        grants_free(b->grants);
        receipts_free(b->receipts);
        pipe_pool_done(&b->pipes);
        secret_free(b->basic);
        keep_free(b->keep);
        setup_free(b->setup);
        sd_event_unref(b->event);
        return mfree(b);
}

static void tell_status(const Broker *b) {
        if (b->closed)
                service_status("closed; %zu tunnels are open", b->n_tunnels);
        else if (!b->setup)
                service_status("waiting to be set up");
        else if (!b->acceptor)
                service_status("session %s: waiting for its listener", b->setup->session);
        else
                service_status("session %s: serving port %u", b->setup->session, b->listen_port);
}

int broker_run(Broker *b) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) signal(SIGPIPE, SIG_IGN); /* splice(2) has no MSG_NOSIGNAL */
        int r = sd_event_add_signal(b->event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(b->event, NULL, SIGINT, NULL, NULL);
        if (r >= 0)
                r = sd_event_set_watchdog(b->event, true); /* where the unit asks for it */
        if (r < 0)
                return r;
        broker_check_idle(b);
        tell_status(b);
        service_ready();
        r = sd_event_loop(b->event);
        service_stopping();
        return r;
}

#define USER "errand:"

/* base64("errand:" CREDENTIAL), RFC 4648 with padding: what every client makes of the proxy variables. */
static int make_basic(const Secret *credential, Secret **ret) {
                char plain[512], text[BASE64_SIZE(sizeof(plain))];
        size_t size = STRLEN(USER) + secret_size(credential);

        if (size > sizeof(plain))
                return -E2BIG;
        memcpy(plain, USER, STRLEN(USER));
        memcpy(plain + STRLEN(USER), secret_data(credential), secret_size(credential));
        int r = secret_new(text, base64_encode(plain, size, text), ret);
        secret_wipe(plain, sizeof(plain));
        secret_wipe(text, sizeof(text));
        return r;
}

static void on_receipts_failed(void *userdata) {
        Broker *b = userdata;
        control_note_receipt_failed(b->control);
}

int broker_configure(Broker *b, Setup *setup) {
        _cleanup_(secret_freep) Secret *basic = NULL;

        if (b->setup)
                return -EALREADY;
        log_set_session(setup->session);
        int r = make_basic(setup->credential, &basic);
        if (r < 0)
                return r;
        if (setup->spool < 0)
                log_warning("session %s: no spool was given: receipts are not kept", setup->session);
        r = receipts_new(setup->session, TAKE_FD(setup->spool), &b->receipts);
        if (r >= 0)
                r = receipts_watch(b->receipts, b->event, on_receipts_failed, b);
        if (r < 0)
                return r;
        b->basic = TAKE_PTR(basic);
        b->setup = setup;
        handover_begin(b->handover);
        log_info("session %s: set up with %zu providers, %zu allowlist entries", setup->session, setup->n_providers,
                 setup->n_allow);
        tell_status(b);
        return 0;
}

static void on_accept(void *userdata, int fd) {
        connection_new(userdata, fd);
}

int broker_listen(Broker *b, int listener, uint32_t address, uint16_t port) {
        int r = acceptor_new(b->event, listener, on_accept, b, &b->acceptor);
        if (r < 0)
                return r;
        b->listen_address = address;
        b->listen_port = port;
        log_info("session %s: the listener on port %u was handed over", b->setup->session, port);
        tell_status(b);
        return 0;
}

void broker_close(Broker *b) {
        if (b->closed)
                return;
        b->closed = true;
        keep_end(b->keep, b);
        b->basic = secret_free(b->basic);
        b->acceptor = acceptor_free(b->acceptor);
        handover_end(b->handover);
        free_connections(b, false);
        if (b->setup)
                exchange_forget_upstreams(b);
        refusal_log_sum_up(&b->refusal_log, b->setup ? b->setup->session : "-");
        log_info("session %s: closed; %zu tunnels stay open", b->setup ? b->setup->session : "-", b->n_tunnels);
        tell_status(b);
}
