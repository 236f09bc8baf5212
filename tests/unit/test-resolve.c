/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/text.h"
#include "broker/limits.h"
#include "broker/resolve.h"
#include "test.h"

/* A resolver of our own in the place of the C library's: names that begin with "slow" wait until they are let go. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER;
static bool let_go;
static atomic_uint calls;
static atomic_int odd_flags;

static void add(struct addrinfo **list, const char *text) {
        struct {
                struct addrinfo info;
                struct sockaddr_in6 in6;
        } *entry = calloc(1, sizeof(*entry));
        struct sockaddr_in *in4 = (struct sockaddr_in *) (void *) &entry->in6;

        entry->info.ai_addr = (struct sockaddr *) (void *) &entry->in6;
        if (inet_pton(AF_INET, text, &in4->sin_addr) == 1)
                entry->info.ai_family = in4->sin_family = AF_INET;
        else {
                (void) inet_pton(AF_INET6, text, &entry->in6.sin6_addr);
                entry->info.ai_family = entry->in6.sin6_family = AF_INET6;
        }
        entry->info.ai_next = *list;
        *list = &entry->info;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret) {
        struct addrinfo *list = NULL;
        char text[INET_ADDRSTRLEN];

        atomic_fetch_add(&calls, 1);
        if (service || (hints->ai_flags & (AI_ADDRCONFIG | AI_IDN | AI_CANONNAME)))
                atomic_store(&odd_flags, hints->ai_flags);
        if (startswith(name, "slow")) {
                (void) pthread_mutex_lock(&lock);
                while (!let_go)
                        (void) pthread_cond_wait(&go, &lock);
                (void) pthread_mutex_unlock(&lock);
        }
        if (startswith(name, "none"))
                return EAI_NONAME;
        if (startswith(name, "many"))
                for (unsigned i = 1; i <= 100; i++) {
                        (void) snprintf(text, sizeof(text), "9.9.9.%u", i);
                        add(&list, text);
                }
        else {
                add(&list, "2606:4700::1");
                add(&list, "9.9.9.9");
                add(&list, "9.9.9.9");
        }
        *ret = list;
        return 0;
}

void freeaddrinfo(struct addrinfo *list) {
        while (list) {
                struct addrinfo *next = list->ai_next;
                free(list);
                list = next;
        }
}

static sd_event *event;
static Resolver *resolver;

typedef struct Outcome {
        unsigned called;
        ResolveResult result;
        size_t n;
        Address first;
        char detail[64];
        usec_t at;
} Outcome;

static void on_result(void *userdata, ResolveResult result, const Address *addresses, size_t n, const char *detail) {
        Outcome *o = userdata;

        o->called++;
        o->result = result;
        o->n = n;
        if (n > 0)
                o->first = addresses[0];
        (void) snprintf(o->detail, sizeof(o->detail), "%s", detail);
        o->at = now_monotonic();
}

static void set_let_go(bool on) {
        (void) pthread_mutex_lock(&lock);
        let_go = on;
        (void) pthread_cond_broadcast(&go);
        (void) pthread_mutex_unlock(&lock);
}

static void begin(void) {
        set_let_go(false);
        atomic_store(&calls, 0);
        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(resolver_new(event, &resolver), 0);
}

static void end(void) {
        resolver = resolver_free(resolver);
        set_let_go(true);
        event = sd_event_unref(event);
}

static void run_until(const Outcome *o) {
        while (o->called == 0)
                CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        CHECK_INT(o->called, 1);
}

static int start(const char *name, Outcome *o, Query **ret) {
        Query *q = NULL;
        int r = resolver_start(resolver, name, on_result, o, &q);
        if (r >= 0 && ret)
                *ret = q;
        return r;
}

static void test_answers(void) {
        Outcome good = {}, none = {}, many = {};

        begin();
        CHECK_INT(start("api.example.com", &good, NULL), 0);
        CHECK_INT(good.called, 0);
        run_until(&good);
        CHECK_INT(good.result, RESOLVE_DONE);
        CHECK_INT(good.n, 2); /* without the repetition */
        CHECK_INT(good.first.family, AF_INET);
        CHECK_INT(start("none.example", &none, NULL), 0);
        run_until(&none);
        CHECK_INT(none.result, RESOLVE_FAILED);
        CHECK_STR(none.detail, gai_strerror(EAI_NONAME));
        CHECK_INT(start("many.example", &many, NULL), 0);
        run_until(&many);
        CHECK_INT(many.n, ADDRESSES_MAX);
        CHECK_INT(atomic_load(&odd_flags), 0);
        end();
}

static void test_not_names(void) {
        static const char *const addresses[] = {"127.0.0.1", "127.1",      "2130706433", "0x7f000001",
                                                "0x7f.1",    "0177.0.0.1", "012.0.0.1",  "::1"};
        Outcome o = {};

        begin();
        for (size_t i = 0; i < ELEMENTSOF(addresses); i++)
                CHECK_INT(start(addresses[i], &o, NULL), -EINVAL);
        CHECK_INT(atomic_load(&calls), 0);
        end();
}

static void test_time_limit(void) {
        Outcome slow[LOOKUP_THREADS + 2] = {}, good = {};
        char name[32];

        begin();
        usec_t began = now_monotonic();
        for (size_t i = 0; i < ELEMENTSOF(slow); i++) {
                (void) snprintf(name, sizeof(name), "slow%zu.example", i);
                CHECK_INT(start(name, &slow[i], NULL), 0);
        }
        run_until(&slow[0]);
        CHECK_INT(slow[0].result, RESOLVE_TIMEOUT);
        CHECK(slow[0].at - began >= LOOKUP_TIMEOUT_USEC);
        CHECK(slow[0].at - began < 2 * LOOKUP_TIMEOUT_USEC);
        for (size_t i = 1; i < ELEMENTSOF(slow); i++)
                run_until(&slow[i]);
        CHECK_INT(resolver_pending(resolver), 0);
        /* Every thread is inside a lookup that was given up, and the next name resolves all the same. */
        CHECK_INT(start("api.example.com", &good, NULL), 0);
        run_until(&good);
        CHECK_INT(good.result, RESOLVE_DONE);
        set_let_go(true);
        (void) sd_event_run(event, 50 * USEC_PER_MSEC);
        CHECK_INT(slow[0].called, 1);
        end();
}

static void test_replaced(void) {
        Outcome slow[LOOKUP_THREADS] = {}, waiting = {};
        Query *queries[LOOKUP_THREADS];
        char name[32];

        begin();
        for (size_t i = 0; i < ELEMENTSOF(slow); i++) {
                (void) snprintf(name, sizeof(name), "slow%zu.example", i);
                CHECK_INT(start(name, &slow[i], &queries[i]), 0);
        }
        while (atomic_load(&calls) < LOOKUP_THREADS)
                (void) usleep(1000);
        CHECK_INT(start("api.example.com", &waiting, NULL), 0);
        (void) sd_event_run(event, 50 * USEC_PER_MSEC);
        CHECK_INT(waiting.called, 0);
        /* Whoever asked is gone; the threads are not, and what waits behind them is not held up. */
        query_cancel(queries[0]);
        run_until(&waiting);
        CHECK_INT(waiting.result, RESOLVE_DONE);
        end();
}

static void test_shared(void) {
        Outcome a = {}, b = {};

        begin();
        CHECK_INT(start("slow.example", &a, NULL), 0);
        CHECK_INT(start("slow.example", &b, NULL), 0);
        CHECK_INT(resolver_pending(resolver), 1);
        set_let_go(true);
        run_until(&a);
        run_until(&b);
        CHECK_INT(atomic_load(&calls), 1);
        end();
}

static void test_cap(void) {
        static Outcome slow[LOOKUPS_MAX];
        static Query *queries[LOOKUPS_MAX];
        Outcome more = {};
        char name[32];

        begin();
        for (size_t i = 0; i < LOOKUPS_MAX; i++) {
                (void) snprintf(name, sizeof(name), "slow%zu.example", i);
                CHECK_INT(start(name, &slow[i], &queries[i]), 0);
        }
        CHECK_INT(start("more.example", &more, NULL), -EBUSY);
        for (size_t i = 0; i < LOOKUPS_MAX; i++)
                query_cancel(queries[i]);
        CHECK_INT(resolver_pending(resolver), 0);
        CHECK_INT(start("more.example", &more, NULL), 0);
        set_let_go(true); /* by now every thread there may be can be inside a lookup that nobody waits for */
        run_until(&more);
        for (size_t i = 0; i < LOOKUPS_MAX; i++)
                CHECK_INT(slow[i].called, 0);
        end();
}

static void test_end_within(void) {
        Outcome slow = {};

        begin();
        CHECK_INT(start("slow.example", &slow, NULL), 0);
        while (atomic_load(&calls) == 0)
                (void) usleep(1000);
        end(); /* which would never be, if it waited for the thread: that is let go only then */
        CHECK_INT(slow.called, 0);
}

int main(void) {
        RUN(test_answers,
            "S073 S079 C126: addresses come in order and once, failures with the resolver's reason, without IDN or ADDRCONFIG");
        RUN(test_not_names, "C131 C132: what getaddrinfo would take as an address is no name");
        RUN(test_time_limit, "S117: a lookup gets five seconds, and threads that hang are replaced");
        RUN(test_replaced, "C157: a lookup that nobody waits for any more does not hold up the next one");
        RUN(test_shared, "C133: one lookup serves those who ask for the same name at once");
        RUN(test_cap, "C157: lookups that are pending are bounded");
        RUN(test_end_within, "a resolver ends while a thread is inside a lookup");
        return TEST_END();
}
