/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "basic/thread.h"
#include "broker/hosts.h"
#include "broker/limits.h"
#include "broker/resolve.h"

/* glibc's resolver and its NSS modules keep large buffers on the stack. */
#define LOOKUP_STACK_SIZE (512U * 1024U)

typedef enum LookupState {
        LOOKUP_WAITING, /* in the pool's queue */
        LOOKUP_RUNNING, /* a thread's */
        LOOKUP_DONE,    /* in the pool's list of done ones */
} LookupState;

typedef struct Lookup {
        char name[HOST_NAME_MAX_BYTES + 1];
        struct Lookup *next; /* of the queue or the list of done ones; under the pool's lock */
        LookupState state;   /* under the lock */
        bool abandoned;      /* under the lock: nobody waits for it */

        Query *queries; /* the loop's */
        struct Lookup *next_live;
        bool dispatching;

        /* Written by the thread while RUNNING, read by the loop once DONE. */
        int error, saved_errno;
        Address addresses[ADDRESSES_MAX];
        size_t n_addresses;
} Lookup;

/* What the loop and the threads share; freed by the last of them. */
typedef struct Pool {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        unsigned refs;
        unsigned n_threads, n_idle, n_stuck; /* stuck: running an abandoned lookup */
        bool stopping;
        Lookup *queue, *done;
        int eventfd;
} Pool;

struct Query {
        Resolver *resolver;
        Lookup *lookup;
        Query *next;
        sd_event_source *timer;
        ResolveHandler handler;
        void *userdata;
};

struct Resolver {
        sd_event *event;
        sd_event_source *io;
        Pool *pool;
        Lookup *live;
        size_t n_live;
};

static void pool_unref_locked(Pool *p) {
        bool last = --p->refs == 0;

        (void) pthread_mutex_unlock(&p->lock);
        if (!last)
                return;
        for (Lookup *l; (l = p->done);) {
                p->done = l->next;
                free(l);
        }
        safe_close(p->eventfd);
        (void) pthread_mutex_destroy(&p->lock);
        (void) pthread_cond_destroy(&p->wake);
        free(p);
}

static void add_address(Lookup *l, const Address *a) {
        for (size_t i = 0; i < l->n_addresses; i++)
                if (address_equal(&l->addresses[i], a))
                        return;
        if (l->n_addresses < ADDRESSES_MAX)
                l->addresses[l->n_addresses++] = *a;
}

static void look_up(Lookup *l) {
        /* No AI_ADDRCONFIG: what this host can reach is found out by dialling. No AI_IDN: names are ASCII and stay what was judged.
         */
        struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;

        errno = 0;
        l->error = getaddrinfo(l->name, NULL, &hints, &list);
        l->saved_errno = errno;
        if (l->error != 0)
                return;
        for (struct addrinfo *i = list; i; i = i->ai_next) {
                Address a = {.family = i->ai_family};
                struct sockaddr_in in4;
                struct sockaddr_in6 in6;

                if (i->ai_family == AF_INET) {
                        memcpy(&in4, i->ai_addr, sizeof(in4));
                        a.in4 = in4.sin_addr;
                } else if (i->ai_family == AF_INET6) {
                        memcpy(&in6, i->ai_addr, sizeof(in6));
                        a.in6 = in6.sin6_addr;
                } else
                        continue;
                add_address(l, &a);
        }
        freeaddrinfo(list);
}

static void finish_locked(Pool *p, Lookup *l) {
        if (l->abandoned) {
                p->n_stuck--;
                free(l);
                return;
        }
        l->state = LOOKUP_DONE;
        l->next = p->done;
        p->done = l;
        (void) eventfd_write(p->eventfd, 1);
}

static void *lookup_thread(void *userdata) {
        Pool *p = userdata;

        (void) pthread_mutex_lock(&p->lock);
        /* One that was written off finds others in its place when it comes back. */
        while (!p->stopping && p->n_threads - p->n_stuck <= LOOKUP_THREADS) {
                Lookup *l = p->queue;
                if (!l) {
                        p->n_idle++;
                        (void) pthread_cond_wait(&p->wake, &p->lock);
                        p->n_idle--;
                        continue;
                }
                p->queue = l->next;
                l->state = LOOKUP_RUNNING;
                (void) pthread_mutex_unlock(&p->lock);
                look_up(l);
                (void) pthread_mutex_lock(&p->lock);
                finish_locked(p, l);
        }
        p->n_threads--;
        pool_unref_locked(p);
        return NULL;
}

/* Starts a thread when something waits and no thread is free. */
static int spawn_locked(Pool *p) {
        if (!p->queue || p->n_idle > 0 || p->n_threads - p->n_stuck >= LOOKUP_THREADS || p->n_threads >= LOOKUPS_MAX)
                return 0;
        int r = thread_start(lookup_thread, p, LOOKUP_STACK_SIZE);
        if (r < 0)
                return r;
        p->n_threads++;
        p->refs++;
        return 0;
}

static void forget_live(Resolver *r, Lookup *l) {
        for (Lookup **p = &r->live; *p; p = &(*p)->next_live)
                if (*p == l) {
                        *p = l->next_live;
                        r->n_live--;
                        return;
                }
}

static void remove_from(Lookup **list, Lookup *l) {
        for (; *list; list = &(*list)->next)
                if (*list == l) {
                        *list = l->next;
                        return;
                }
}

static void abandon(Resolver *r, Lookup *l) {
        Pool *p = r->pool;

        forget_live(r, l);
        (void) pthread_mutex_lock(&p->lock);
        if (l->state == LOOKUP_RUNNING) {
                l->abandoned = true;
                p->n_stuck++;
                (void) spawn_locked(p); /* whoever waits has a time limit of its own */
                l = NULL;
        } else
                remove_from(l->state == LOOKUP_WAITING ? &p->queue : &p->done, l);
        (void) pthread_mutex_unlock(&p->lock);
        free(l);
}

Query *query_cancel(Query *q) {
        if (!q)
                return NULL;
        Lookup *l = q->lookup;
        if (l) {
                for (Query **p = &l->queries; *p; p = &(*p)->next)
                        if (*p == q) {
                                *p = q->next;
                                break;
                        }
                if (!l->queries && !l->dispatching)
                        abandon(q->resolver, l);
        }
        sd_event_source_disable_unref(q->timer);
        return mfree(q);
}

static int on_timeout(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Query *q = userdata;
        ResolveHandler handler = q->handler;
        void *data = q->userdata;

        query_cancel(q);
        handler(data, RESOLVE_TIMEOUT, NULL, 0, "no answer in time");
        return 0;
}

static void dispatch(Lookup *l) {
        ResolveResult result = l->error == 0 && l->n_addresses > 0 ? RESOLVE_DONE : RESOLVE_FAILED;
        const char *detail = "";

        if (l->error == EAI_SYSTEM)
                detail = strerror(l->saved_errno);
        else if (l->error != 0)
                detail = gai_strerror(l->error);
        else if (l->n_addresses == 0)
                detail = "no addresses";

        l->dispatching = true;
        for (Query *q; (q = l->queries);) {
                ResolveHandler handler = q->handler;
                void *data = q->userdata;

                query_cancel(q);
                handler(data, result, l->addresses, l->n_addresses, detail);
        }
        free(l);
}

static int on_done(_unused_ sd_event_source *s, int fd, _unused_ uint32_t revents, void *userdata) {
        Resolver *r = userdata;
        eventfd_t value;

        (void) eventfd_read(fd, &value);
        /* One at a time: a handler may cancel a query whose lookup is the next one here. */
        for (;;) {
                (void) pthread_mutex_lock(&r->pool->lock);
                Lookup *l = r->pool->done;
                if (l)
                        r->pool->done = l->next;
                (void) pthread_mutex_unlock(&r->pool->lock);
                if (!l)
                        return 0;
                forget_live(r, l);
                dispatch(l);
        }
}

int resolver_new(sd_event *event, Resolver **ret) {
        _cleanup_(resolver_freep) Resolver *r = calloc(1, sizeof(Resolver));
        if (!r)
                return -ENOMEM;
        r->event = sd_event_ref(event);

        Pool *p = calloc(1, sizeof(Pool));
        if (!p)
                return -ENOMEM;
        (void) pthread_mutex_init(&p->lock, NULL);
        (void) pthread_cond_init(&p->wake, NULL);
        p->refs = 1;
        r->pool = p;
        p->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (p->eventfd < 0)
                return -errno;

        int k = sd_event_add_io(event, &r->io, p->eventfd, EPOLLIN, on_done, r);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

Resolver *resolver_free(Resolver *r) {
        if (!r)
                return NULL;
        while (r->live) {
                Lookup *l = r->live;
                l->dispatching = true; /* keeps the last query from abandoning it a second time */
                while (l->queries)
                        query_cancel(l->queries);
                abandon(r, l);
        }
        sd_event_source_disable_unref(r->io);
        sd_event_unref(r->event);
        if (r->pool) {
                (void) pthread_mutex_lock(&r->pool->lock);
                r->pool->stopping = true;
                (void) pthread_cond_broadcast(&r->pool->wake);
                pool_unref_locked(r->pool);
        }
        return mfree(r);
}

static Lookup *find_live(Resolver *r, const char *name) {
        for (Lookup *l = r->live; l; l = l->next_live)
                if (streq(l->name, name))
                        return l;
        return NULL;
}

static int add_lookup(Resolver *r, const char *name, Lookup **ret) {
        Pool *p = r->pool;
        Lookup **tail;

        if (r->n_live >= LOOKUPS_MAX)
                return -EBUSY;
        if (strlen(name) > HOST_NAME_MAX_BYTES)
                return -EINVAL;
        Lookup *l = calloc(1, sizeof(Lookup));
        if (!l)
                return -ENOMEM;
        strcpy(l->name, name);

        (void) pthread_mutex_lock(&p->lock);
        for (tail = &p->queue; *tail;)
                tail = &(*tail)->next;
        *tail = l;
        int k = spawn_locked(p);
        if (k < 0 && p->n_threads - p->n_stuck == 0)
                *tail = NULL;
        else {
                k = 0;
                (void) pthread_cond_signal(&p->wake);
        }
        (void) pthread_mutex_unlock(&p->lock);
        if (k < 0) {
                free(l);
                return k;
        }
        l->next_live = r->live;
        r->live = l;
        r->n_live++;
        *ret = l;
        return 0;
}

int resolver_start(Resolver *r, const char *name, ResolveHandler handler, void *userdata, Query **ret) {
        struct in_addr in4;
        struct in6_addr in6;
        Lookup *l;

        /* What inet_aton() takes, getaddrinfo() would take as an address: "127.1", "0x7f000001", "2130706433". */
        if (inet_aton(name, &in4) != 0 || inet_pton(AF_INET6, name, &in6) == 1)
                return -EINVAL;
        Query *q = calloc(1, sizeof(Query));
        if (!q)
                return -ENOMEM;
        q->resolver = r;
        q->handler = handler;
        q->userdata = userdata;
        int k = sd_event_add_time_relative(r->event, &q->timer, CLOCK_MONOTONIC, LOOKUP_TIMEOUT_USEC, 10 * USEC_PER_MSEC,
                                           on_timeout, q);
        if (k < 0) {
                query_cancel(q);
                return k;
        }
        l = find_live(r, name);
        if (!l) {
                k = add_lookup(r, name, &l);
                if (k < 0) {
                        query_cancel(q);
                        return k;
                }
        }
        q->lookup = l;
        q->next = l->queries;
        l->queries = q;
        *ret = q;
        return 0;
}

size_t resolver_pending(const Resolver *r) {
        return r->n_live;
}
