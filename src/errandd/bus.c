/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/gate.h"
#include "errandd/operation.h"

BusLink *bus_link_of(void *userdata) {
        return ((BusConnection *) userdata)->current;
}

void *bus_link_set_target(BusLink *l, BusTarget t) {
        t.link = l;
        l->connection->target = t;
        return &l->connection->target;
}

Manager *bus_link_manager(const BusLink *l) {
        return l->connection->face->manager;
}

bool bus_link_is_ready(const BusLink *l) {
        return l->connection->face->ready;
}

int bus_link_reload(BusLink *l, ReloadDone done, void *userdata, Fault *f) {
        return bus_reload(l->connection->face, done, userdata, f);
}

Caller bus_link_caller(const BusLink *l) {
        Authorizer *a = l->connection->face->authorizer;

        return (Caller){.uid = l->uid, .operator = a->operator(a, l->uid)};
}

bool bus_link_may_see(BusLink *l, const Session *s) {
        BusConnection *at = l->connection;
        Caller c = bus_link_caller(l);

        return (at->current == l && s == at->admitted) || session_may_see(s, &c);
}

Session *bus_link_find(BusLink *l, const char *id) {
        Session *s = manager_find(l->connection->face->manager, id);

        return s && bus_link_may_see(l, s) ? s : NULL;
}

void bus_link_foresee_start(BusLink *l, Session *s) {
        gate_foresee_start(l, s);
}

const Say *bus_link_said(const BusLink *l) {
        return &l->connection->said;
}

bool bus_link_receipt(BusLink *l, uint64_t number, const StoredReceipt **ret) {
        StoredReceiptList *list = &l->connection->receipt;
        ReceiptFilter filter = RECEIPT_FILTER_ANY;
        Fault f = {};
        int r;

        if (number >= INT64_MAX)
                return false; /* SQLite's numbers end there */
        if (list->n_receipts == 0 || list->receipts[0].number != number) {
                stored_receipt_list_done(list);
                filter.before = number + 1;
                filter.limit = 1;
                r = manager_receipts(l->connection->face->manager, &filter, list, &f);
                if (r < 0) {
                        log_warning_errno(r, "Failed to look up receipt %llu, taking it as not there: %s", (unsigned long long) number,
                                          f.text ?: "no reason was given");
                        fault_done(&f);
                        return false;
                }
        }
        if (list->n_receipts == 0 || list->receipts[0].number != number)
                return false;
        *ret = list->receipts;
        return true;
}

int bus_not_found(sd_bus_error *error, const char *what) {
        return bus_error_setf(error, BUS_ERROR_NOT_FOUND, "there is no such %s, or it is not yours", what);
}

int bus_fault(sd_bus_error *error, Fault *f, int r) {
        _Static_assert((int) _BUS_ERROR_MAX == (int) _ERROR_CODE_MAX, "the bus names every code");
        _Static_assert((int) BUS_ERROR_STORAGE == (int) ERROR_STORAGE && (int) BUS_ERROR_LIMIT == (int) ERROR_LIMIT &&
                       (int) BUS_ERROR_NOT_FOUND == (int) ERROR_NOT_FOUND && (int) BUS_ERROR_SETUP == (int) ERROR_SETUP &&
                       (int) BUS_ERROR_CONFIGURATION == (int) ERROR_CONFIGURATION, "in the same order");

        if (f->code != ERROR_NONE)
                r = bus_error_set(error, (BusError) f->code, f->text);
        else
                r = sd_bus_error_set_errno(error, r);
        fault_done(f);
        return r;
}

int bus_link_new(BusConnection *c, const char *name, uid_t uid, BusLink **ret) {
        BusLink *l = calloc(1, sizeof(BusLink));

        if (!l)
                return -ENOMEM;
        *l = (BusLink){.connection = c, .uid = uid, .next = c->face->links};
        if (name) {
                l->name = strdup(name);
                if (!l->name) {
                        free(l);
                        return -ENOMEM;
                }
        }
        c->face->links = l;
        c->face->n_links++;
        *ret = l;
        return 0;
}

/* Everything that it made the daemon keep. */
static void link_clear(BusLink *l) {
        l->subscribed = false;
        gate_forget(l);
        operation_forget(l);
        bus_client_forget(l);
        bus_delayed_forget(l);
        bus_taken_forget(l);
        bus_unread_forget(l);
}

static BusLink *link_free(BusLink *l) {
        BusConnection *c = l->connection;

        link_clear(l);
        c->face->unread -= l->counted;
        if (c->current == l)
                c->current = NULL;
        if (c->target.link == l)
                c->target.link = NULL;
        if (!c->shared)
                bus_connection_free(c);
        free(l->name);
        return mfree(l);
}

void bus_link_close(BusLink *l) {
        size_t n_held = l->n_held;

        l->dead = true;
        link_clear(l);
        bus_delayed_wake(l, DELAY_ROOM);
        for (; n_held > 0; n_held--)
                bus_delayed_wake(l, DELAY_AUTHORIZATION);
        (void) sd_event_source_set_enabled(l->connection->face->tidy, SD_EVENT_ONESHOT);
}

int bus_link_may_keep(const BusLink *l, AccountCap cap, sd_bus_error *error) {
        static const struct {
                size_t max;
                const char *what;
        } caps[] = {
                [ACCOUNT_HELD] = {BUS_ACCOUNT_HELD_MAX, "calls of your account are waiting for an authorization"},
                [ACCOUNT_OPERATION] = {BUS_ACCOUNT_OPERATIONS_MAX, "calls of your account are still waiting for their sessions"},
                [ACCOUNT_SUBSCRIPTION] = {BUS_ACCOUNT_KEPT_MAX, "connections of your account are subscribed or wait for something"},
        };
        size_t n = 0;

        if (!l->name)
                return 0; /* on a connection of its own it has caps of its own */
        for (const BusLink *i = l->connection->face->links; i; i = i->next) {
                if (i->uid != l->uid || i->dead)
                        continue;
                n += cap == ACCOUNT_HELD ? i->n_held : cap == ACCOUNT_OPERATION ? i->n_operations : i != l && bus_link_keeps(i);
        }
        return n < caps[cap].max ? 0 : bus_error_setf(error, BUS_ERROR_LIMIT, "%zu %s", caps[cap].max, caps[cap].what);
}

/* As with what is not read (bus-unread.c): however many accounts fill their part, the next one has something. */
bool bus_link_may_hold(const BusLink *l, size_t size) {
        size_t account = size, all = l->connection->face->held_size + size, max = BUS_HELD_SIZE_MAX;

        for (const BusLink *i = l->connection->face->links; i; i = i->next)
                account += i->uid == l->uid ? i->held_size : 0;
        if (all < BUS_HELD_ALL_MAX)
                max = MAX(max, BUS_HELD_ALL_MAX - all);
        return account <= max;
}

void bus_link_hold(BusLink *l, size_t size) {
        l->held_size += size;
        l->connection->face->held_size += size;
}

void bus_link_let_go(BusLink *l, size_t size) {
        l->held_size -= size;
        l->connection->face->held_size -= size;
}

int bus_link_subscribe(BusLink *l, sd_bus_error *error) {
        int r = bus_link_may_keep(l, ACCOUNT_SUBSCRIPTION, error);

        if (r >= 0) {
                l->subscribed = true;
                l->missed = 0;
        }
        return r;
}

void bus_link_unsubscribe(BusLink *l) {
        l->subscribed = false;
}

bool bus_link_keeps(const BusLink *l) {
        return l->subscribed || l->lookup || l->n_unknown > 0 || l->n_held > 0 || l->n_delayed > 0 || l->n_operations > 0;
}

bool bus_link_follows(const BusLink *l, const char *id) {
        for (size_t i = 0; i < BUS_FOLLOWED_MAX; i++)
                if (streq(l->followed[i], id))
                        return true;
        return false;
}

void bus_link_follow(BusLink *l, const char *id) {
        if (bus_link_follows(l, id))
                return;
        /* The one that was followed first is forgotten. */
        (void) snprintf(l->followed[l->next_followed], sizeof(l->followed[0]), "%s", id);
        l->next_followed = (l->next_followed + 1) % BUS_FOLLOWED_MAX;
}

void bus_link_unfollow(BusLink *l, const char *id) {
        for (size_t i = 0; i < BUS_FOLLOWED_MAX; i++)
                if (streq(l->followed[i], id))
                        l->followed[i][0] = 0;
}

static int tidy_handler(_unused_ sd_event_source *source, void *userdata) {
        Bus *b = userdata;

        for (BusConnection *c = b->connections; c; c = c->next)
                bus_connection_tidy(c);
        for (BusLink **p = &b->links; *p;) {
                BusLink *l = *p;

                if (!l->dead) {
                        bus_unread_ask(l);
                        bus_delayed_wake_passed(l);
                        p = &l->next;
                        continue;
                }
                *p = l->next;
                b->n_links--;
                link_free(l);
        }
        return 0;
}

/* polkit has answered what nobody waits for. */
static void on_settled(uid_t uid, void *userdata) {
        bus_delayed_wake_account(userdata, uid, DELAY_AUTHORIZATION);
}

int bus_prepare(Manager *m, const BusOptions *options, Bus **ret) {
        _cleanup_(bus_freep) Bus *b = calloc(1, sizeof(Bus));
        int r;

        if (!b)
                return -ENOMEM;
        *b = (Bus){.manager = m, .listen_fd = -EBADF, .max_links = BUS_CLIENTS_MAX, .delay_usec = BUS_DELAYED_USEC};
        if (options) {
                b->authorizer = options->authorizer;
                b->lost = options->lost;
                b->reloaded = options->reloaded;
                b->options_userdata = options->userdata;
        }
        if (!b->authorizer)
                b->authorizer = authorizer_same_uid();
        if (b->authorizer->watch)
                b->authorizer->watch(b->authorizer, on_settled, b);
        r = sd_event_add_defer(manager_event(m), &b->tidy, tidy_handler, b);
        if (r >= 0)
                r = sd_event_source_set_enabled(b->tidy, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(b->tidy, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = subscribe_begin(b);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(b);
        return 0;
}

Bus *bus_free(Bus *b) {
        if (!b)
                return NULL;
        subscribe_end(b);
        if (b->authorizer->watch)
                b->authorizer->watch(b->authorizer, NULL, NULL);
        bus_delayed_stop(b);
        sd_event_source_disable_unref(b->accept);
        while (b->links) {
                BusLink *l = b->links;

                b->links = l->next;
                link_free(l); /* what the kernel has, arrives; a client that does not read cannot delay the end */
        }
        while (b->connections)
                bus_connection_free(b->connections);
        sd_event_source_disable_unref(b->tidy);
        safe_close(b->listen_fd);
        free(b);
        return NULL;
}

typedef struct Reload {
        Bus *bus;
        ReloadDone done, told; /* who asked, and who hears of each */
        void *userdata, *told_userdata;
} Reload;

/* With a fault also when the bus has gone. */
static void on_reloaded(const Fault *fault, void *userdata) {
        _cleanup_free_ Reload *reload = userdata;
        Authorizer *a = fault ? NULL : reload->bus->authorizer;
        Fault f = {};

        /* In digits: nobody has to be asked for them here. */
        int r = a && a->set_operators ? a->set_operators(a, manager_config(reload->bus->manager)->operator_uids) : 0;
        if (r < 0)
                (void) fault_set(&f, ERROR_CONFIGURATION, "the operators stay those of before: %s", strerror(-r));
        if (reload->told)
                reload->told(r < 0 ? &f : fault, reload->told_userdata);
        if (reload->done)
                reload->done(r < 0 ? &f : fault, reload->userdata);
        fault_done(&f);
}

int bus_reload(Bus *b, ReloadDone done, void *userdata, Fault *f) {
        Reload *reload = malloc(sizeof(Reload));

        if (!reload)
                return fault_set(f, ERROR_CONFIGURATION, "out of memory");
        *reload = (Reload){.bus = b, .done = done, .userdata = userdata, .told = b->reloaded, .told_userdata = b->options_userdata};
        int r = manager_reload(b->manager, on_reloaded, reload, f);
        if (r < 0)
                free(reload);
        return r;
}

size_t bus_connections(const Bus *b) {
        return b->n_links;
}
