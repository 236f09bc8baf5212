/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/thread.h"
#include "broker/trust.h"

struct TrustWait {
        void (*handler)(void *userdata);
        void *userdata;
        TrustWait *next;
};

/* Of the thread; the last of thread and loop frees it. */
typedef struct Loading {
        int done; /* eventfd */
        gnutls_x509_trust_list_t list;
        atomic_uint users;
} Loading;

/* The loop's. */
static struct {
        gnutls_x509_trust_list_t list;
        Loading *loading;
        sd_event_source *io;
        TrustWait *waiting;
} trust;

static gnutls_x509_trust_list_t load(void) {
        gnutls_x509_trust_list_t list;

        if (gnutls_x509_trust_list_init(&list, 0) < 0)
                return NULL;
        if (gnutls_x509_trust_list_add_system_trust(list, 0, 0) <= 0)
                log_warning("this host has no trusted certificates that could be read (Debian: ca-certificates): only providers with "
                            "a caFile can be called over TLS");
        return list;
}

static void loading_unref(Loading *l) {
        if (atomic_fetch_sub(&l->users, 1) > 1)
                return;
        if (l->list)
                gnutls_x509_trust_list_deinit(l->list, 1);
        safe_close(l->done);
        free(l);
}

static void *loading_run(void *userdata) {
        Loading *l = userdata;

        l->list = load();
        (void) eventfd_write(l->done, 1);
        loading_unref(l);
        return NULL;
}

static void stop_watching(void) {
        trust.io = sd_event_source_disable_unref(trust.io);
        if (trust.loading)
                loading_unref(TAKE_PTR(trust.loading));
}

bool trust_is_loaded(void) {
        return trust.list != NULL;
}

static int on_done(_unused_ sd_event_source *s, int fd, _unused_ uint32_t revents, _unused_ void *userdata) {
        uint64_t n;

        if (read(fd, &n, sizeof(n)) != (ssize_t) sizeof(n))
                return 0;
        if (!trust.list)
                trust.list = TAKE_PTR(trust.loading->list); /* the thread has written it before it told */
        stop_watching();
        for (TrustWait *w; (w = trust.waiting);) {
                trust.waiting = w->next;
                void (*handler)(void *) = w->handler;
                void *data = w->userdata;
                free(w);
                handler(data);
        }
        return 0;
}

static int begin(sd_event *event) {
        Loading *l = calloc(1, sizeof(Loading));
        if (!l)
                return -ENOMEM;
        atomic_init(&l->users, 1);
        trust.loading = l;
        l->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        int r = l->done < 0 ? -errno : sd_event_add_io(event, &trust.io, l->done, EPOLLIN, on_done, NULL);
        if (r >= 0) {
                atomic_fetch_add(&l->users, 1);
                r = thread_start(loading_run, l, 0);
                if (r < 0)
                        atomic_fetch_sub(&l->users, 1);
        }
        if (r < 0)
                stop_watching();
        return r;
}

int trust_wait(sd_event *event, void (*handler)(void *userdata), void *userdata, TrustWait **ret) {
        int r = trust.loading ? 0 : begin(event);
        if (r < 0)
                return r;
        TrustWait *w = malloc(sizeof(TrustWait));
        if (!w)
                return -ENOMEM;
        *w = (TrustWait){.handler = handler, .userdata = userdata, .next = trust.waiting};
        trust.waiting = w;
        *ret = w;
        return 0;
}

TrustWait *trust_wait_cancel(TrustWait *w) {
        for (TrustWait **p = &trust.waiting; w && *p; p = &(*p)->next)
                if (*p == w) {
                        *p = w->next;
                        break;
                }
        return mfree(w);
}

gnutls_x509_trust_list_t trust_get(void) {
        if (!trust.list)
                trust.list = load();
        return trust.list;
}

void trust_forget(void) {
        stop_watching();
        if (trust.list)
                gnutls_x509_trust_list_deinit(trust.list, 1);
        trust.list = NULL;
}
