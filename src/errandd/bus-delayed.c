/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "errandd/bus-link.h"
#include "errandd/message-size.h"

/* Calls of clients of a message bus that wait, since their account has as much as it may: of answers that it has not taken, or of questions to polkit.
 * There is room again when a connection has taken something, a call was answered, or a client has gone: the first of the account's that fit come
 * through again, from the beginning. So does, to be refused, one for which BUS_DELAYED_USEC long nothing of that happened. */

struct Delayed {
        BusLink *link;
        sd_bus_message *message;
        size_t size;
        uint64_t need; /* bytes of its answer; reserved while it comes through */
        DelayReason reason;
        usec_t since; /* nothing has happened that makes room for its account */
        usec_t looked; /* whether something was taken */
        enum {
                WAITS,
                COMES, /* again, to the gate */
                CAME,  /* and is looked at */
        } state;
        bool expired;
        Delayed *next;
};

static Delayed *find(const BusLink *l, const sd_bus_message *m) {
        for (Delayed *d = l->connection->face->delayed; d; d = d->next)
                if (d->link == l && d->message == m)
                        return d;
        return NULL;
}

static void set_state(Delayed *d, int state) {
        if (d->state == COMES)
                bus_unread_give_up(d->link, d->need);
        if (state == COMES)
                bus_unread_reserve(d->link, d->need);
        d->state = state;
}

static void delayed_remove(Delayed *d) {
        Bus *b = d->link->connection->face;

        set_state(d, WAITS);
        for (Delayed **p = &b->delayed; *p; p = &(*p)->next)
                if (*p == d) {
                        *p = d->next;
                        break;
                }
        d->link->n_delayed--;
        bus_link_let_go(d->link, d->size);
        sd_bus_message_unref(d->message);
        free(d);
}

static void come(Delayed *d) {
        set_state(d, COMES);
        if (sd_bus_enqueue_for_read(d->link->connection->bus, d->message) < 0)
                delayed_remove(d); /* the connection has gone: nothing is left to answer */
}

static void ask(const BusLink *l) {
        bus_unread_ask_account(l);
        bus_taken_look(l);
}

/* Nobody of its account is asked, so that nobody can be blamed: it waits for calls that are under way. */
static bool is_nobodys(Delayed *d) {
        if (d->reason != DELAY_ROOM || bus_unread_is_asked(d->link))
                return false;
        ask(d->link);
        return true;
}

static void expire(Delayed *d, usec_t now) {
        if (is_nobodys(d)) {
                d->since = now;
                if (!bus_unread_has_room(d->link))
                        return;
        } else
                d->expired = true;
        come(d);
}

static int on_time(sd_event_source *source, _unused_ uint64_t usec, void *userdata);

static usec_t next_time(const Bus *b) {
        usec_t until = USEC_INFINITY;

        for (const Delayed *d = b->delayed; d; d = d->next)
                if (d->state == WAITS)
                        until = MIN(until, d->reason == DELAY_ROOM ? d->looked + MIN(BUS_TAKEN_USEC, b->delay_usec) : d->since + b->delay_usec);
        return until;
}

static int arm(Bus *b) {
        usec_t until = next_time(b);
        int r;

        if (until == USEC_INFINITY)
                return 0;
        if (!b->delay)
                return sd_event_add_time(manager_event(b->manager), &b->delay, CLOCK_MONOTONIC, until, BUS_TAKEN_USEC / 10, on_time, b);
        r = sd_event_source_set_time(b->delay, until);
        return r < 0 ? r : sd_event_source_set_enabled(b->delay, SD_EVENT_ONESHOT);
}

static int on_time(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Bus *b = userdata;
        usec_t now = now_monotonic();
        uid_t last = UID_NONE;

        for (Delayed *d = b->delayed, *next; d; d = next) {
                next = d->next;
                if (d->state != WAITS)
                        continue;
                if (d->reason == DELAY_ROOM && d->link->uid != last) { /* an account's stand together, mostly */
                        last = d->link->uid;
                        bus_taken_look(d->link);
                }
                d->looked = now;
                if (now >= d->since + b->delay_usec)
                        expire(d, now);
        }
        return arm(b);
}

static bool may_delay(const BusLink *l, size_t size) {
        const Bus *b = l->connection->face;
        size_t n = 0, sum = size;

        for (const Delayed *d = b->delayed; d; d = d->next)
                if (d->link->uid == l->uid) {
                        n++;
                        sum += d->size;
                }
        return l->n_delayed < BUS_HELD_MAX && n < BUS_ACCOUNT_DELAYED_MAX && sum <= BUS_ACCOUNT_DELAYED_SIZE_MAX && bus_link_may_hold(l, size);
}

/* Behind all others: the first one has waited for longest. */
static void append(Bus *b, Delayed *d) {
        Delayed **p = &b->delayed;

        while (*p)
                p = &(*p)->next;
        *p = d;
        d->link->n_delayed++;
        bus_link_hold(d->link, d->size);
}

bool bus_delay(BusLink *l, sd_bus_message *m, DelayReason reason, uint64_t need) {
        Bus *b = l->connection->face;
        Delayed *d = find(l, m);
        usec_t now = now_monotonic();
        size_t size;

        if (!l->name || (d && d->expired))
                return false;
        if (!d) {
                if (message_size(m, BUS_HELD_SIZE_MAX, &size) < 0 || !may_delay(l, size))
                        return false;
                d = calloc(1, sizeof(Delayed));
                if (!d)
                        return false;
                *d = (Delayed){.link = l, .message = sd_bus_message_ref(m), .size = size, .need = need, .since = now, .looked = now};
                append(b, d);
        }
        set_state(d, WAITS);
        d->reason = reason;
        if (reason == DELAY_ROOM)
                ask(l);
        if (arm(b) >= 0)
                return true;
        delayed_remove(d);
        return false;
}

void bus_delayed_came(BusLink *l, sd_bus_message *m) {
        Delayed *d = find(l, m);

        if (d)
                set_state(d, CAME);
}

/* As many as there is room for; of those that wait for an authorization one, since one was answered. */
static void wake(const Bus *b, uid_t uid, DelayReason reason) {
        for (Delayed *d = b->delayed, *next; d; d = next) {
                next = d->next;
                if (d->link->uid != uid || d->reason != reason || d->state != WAITS)
                        continue;
                if (reason == DELAY_ROOM && !bus_unread_has_room(d->link))
                        return;
                come(d);
                if (reason == DELAY_AUTHORIZATION)
                        return;
        }
        /* Nobody of that account waits for it, so it is another's. */
        for (Delayed *d = reason == DELAY_AUTHORIZATION ? b->delayed : NULL; d; d = d->next)
                if (d->reason == reason && d->state == WAITS) {
                        come(d);
                        return;
                }
}

void bus_delayed_wake_account(Bus *b, uid_t uid, DelayReason reason) {
        usec_t now = now_monotonic();

        for (Delayed *d = b->delayed; d; d = d->next)
                if (d->link->uid == uid && d->reason == reason)
                        d->since = now;
        wake(b, uid, reason);
}

void bus_delayed_wake(const BusLink *l, DelayReason reason) {
        bus_delayed_wake_account(l->connection->face, l->uid, reason);
}

void bus_delayed_end(BusLink *l, sd_bus_message *m) {
        Delayed *d = find(l, m);

        if (!d || d->state != CAME)
                return;
        bool asked = d->reason == DELAY_AUTHORIZATION;
        delayed_remove(d);
        bus_delayed_wake_later(l);
        if (asked) /* if it was answered unasked, the next one has its place; else that waits again */
                wake(l->connection->face, l->uid, DELAY_AUTHORIZATION);
}

void bus_delayed_wake_later(BusLink *l) {
        l->passed = true;
        (void) sd_event_source_set_enabled(l->connection->face->tidy, SD_EVENT_ONESHOT);
}

void bus_delayed_wake_passed(BusLink *l) {
        if (l->passed)
                wake(l->connection->face, l->uid, DELAY_ROOM);
        l->passed = false;
}

void bus_delayed_forget(BusLink *l) {
        for (Delayed *d = l->connection->face->delayed, *next; d; d = next) {
                next = d->next;
                if (d->link == l)
                        delayed_remove(d);
        }
}

void bus_delayed_stop(Bus *b) {
        while (b->delayed)
                delayed_remove(b->delayed);
        b->delay = sd_event_source_disable_unref(b->delay);
}
