/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files that carry messages share; the handlers of objects have bus-handler.h. A connection is an sd_bus: a client's own, or the one
 * that all clients of a message bus are behind. A link is one client: on a connection of its own, or of a unique name. */

#include <systemd/sd-bus.h>

#include "errandd/bus.h"
#include "errandd/bus-handler.h"
#include "errandd/bus-limits.h"
#include "errandd/say.h"

typedef struct BusConnection BusConnection;
typedef struct Delayed Delayed;
typedef struct Held Held;
typedef struct Operation Operation;
typedef struct OwnerEntry OwnerEntry;

#define BUS_SLOTS_MAX 16U /* filter, objects, enumerators, matches of a connection */

struct BusConnection {
        Bus *face;
        BusConnection *next;
        sd_bus *bus;
        bool shared;     /* a message bus's */
        bool attached;   /* to the event loop by us */
        bool lost;
        sd_bus_slot *slots[BUS_SLOTS_MAX];
        size_t n_slots;
        bool connected;  /* it has just authenticated */
        bool throttled;  /* the other side does not read: nothing of it is read until it does */
        sd_event_source *throttle;
        /* Of the message in hand: */
        BusLink *current; /* who sent it; NULL: who had one last has gone */
        BusTarget target;
        Session *admitted; /* whose object the gate let it act on */
        StoredReceiptList receipt; /* the one that it is about, looked up once */
        Say said; /* in a session's thread: what it means, read by the gate */
};

/* Bytes that a client may not have taken yet. */
typedef struct BusUnread {
        uint64_t signals, answers, refusals; /* for other unread ones */
} BusUnread;

struct BusLink {
        BusConnection *connection;
        BusLink *next;
        char *name; /* the unique one; NULL on a connection of its own */
        uid_t uid;  /* by the kernel's word, or the bus daemon's; UID_NONE while that is asked for */
        bool subscribed;
        uint64_t missed; /* updates of conversations that it did not get */
        BusUnread unread, pinged, looked; /* of these, those before the ping, and before the question to the bus daemon */
        uint64_t reserved; /* bytes of answers to calls that are under way */
        uint64_t counted;  /* of both, as in the sum of all */
        bool passed; /* a call for which room was kept */
        sd_bus_slot *ping, *look;
        bool ping_waits; /* for an end of others' */
        usec_t look_time; /* of the last one */
        bool dead; /* gone: to be freed outside of its own callbacks */
        sd_bus_slot *lookup; /* the question for its uid */
        sd_bus_message *unknown[BUS_UNKNOWN_MESSAGES_MAX]; /* what came meanwhile */
        size_t n_unknown, unknown_size;
        Held *held;
        size_t n_held, n_delayed, held_size; /* bytes of both */
        Operation *operations;
        size_t n_operations;
        char followed[BUS_FOLLOWED_MAX][SESSION_ID_MAX + 1]; /* others' sessions that it was let through to see; "" for none */
        size_t next_followed;
};

struct Bus {
        Manager *manager;
        Authorizer *authorizer;
        int listen_fd;
        sd_event_source *accept, *tidy;
        BusConnection *connections;
        BusLink *links; /* those of a message bus in the order of their last message */
        size_t n_links, max_links; /* BUS_CLIENTS_MAX */
        uint64_t unread; /* bytes that all links have not taken, or that are reserved */
        size_t held_size; /* bytes of all held and delayed messages */
        size_t unknown_size; /* of those of clients whose uid is not known yet */
        Delayed *delayed; /* in the order in which they came */
        sd_event_source *delay;
        usec_t delay_usec; /* BUS_DELAYED_USEC */
        Observer observer;
        OwnerEntry *owners; /* subscribe.c */
        size_t n_owners;
        void (*lost)(void *userdata);
        void (*reloaded)(const Fault *fault, void *userdata);
        void *options_userdata; /* of both */
        bool ready;
};

/* bus.c */
int bus_prepare(Manager *m, const BusOptions *options, Bus **ret);
int bus_link_new(BusConnection *c, const char *name, uid_t uid, BusLink **ret);
void bus_link_close(BusLink *l);
/* Its account's caps, on a message bus: true, it may keep one more; else the error is set. */
typedef enum AccountCap {
        ACCOUNT_HELD,
        ACCOUNT_OPERATION,
        ACCOUNT_SUBSCRIPTION,
} AccountCap;
int bus_link_may_keep(const BusLink *l, AccountCap cap, sd_bus_error *error);
/* Of messages that are held or delayed: whether its account may have that many bytes more, and that it has, and has no more. */
bool bus_link_may_hold(const BusLink *l, size_t size);
void bus_link_hold(BusLink *l, size_t size);
void bus_link_let_go(BusLink *l, size_t size);
/* It made the daemon keep something: it cannot be thrown out for another. */
bool bus_link_keeps(const BusLink *l);
/* From now on it hears of that session of another's, while both are there. */
void bus_link_follow(BusLink *l, const char *id);
void bus_link_unfollow(BusLink *l, const char *id);
bool bus_link_follows(const BusLink *l, const char *id);

/* bus-connection.c */
BusConnection *bus_connection_new(Bus *b, bool shared); /* linked into b's list */
BusConnection *bus_connection_free(BusConnection *c);    /* and out of it; its links must have gone */
int bus_connection_register(BusConnection *c);          /* the gate and every object */
sd_bus_slot **bus_connection_slot(BusConnection *c);    /* a place for one more */
void bus_connection_connected(BusConnection *c);
void bus_connection_lost(BusConnection *c);
/* Looks after a connection that queues more than the other side takes. */
void bus_connection_watch_queue(BusConnection *c);
/* A call with a large answer, while answers are still to be taken: true, it comes through again when they are. */
bool bus_connection_postpone(BusConnection *c, sd_bus_message *m);
/* Outside of its own callbacks, what those have noted. */
void bus_connection_tidy(BusConnection *c);

/* bus-client.c: the link of a message on a message bus. 0 with *ret; -EINPROGRESS: held until its sender's uid is known. */
int bus_client_find(BusConnection *c, sd_bus_message *m, BusLink **ret, sd_bus_error *error);
void bus_client_forget(BusLink *l); /* drops what waits for its uid */

/* bus-unread.c */
int bus_unread_begin(sd_bus *bus); /* a message bus; before anything is sent to a client of it */
void bus_unread_add_signal(BusLink *l, sd_bus_message *m); /* sealed, that is sent to it */
void bus_unread_ask(BusLink *l); /* whether it has taken what it was sent, if that is due */
void bus_unread_add_refusal(BusLink *l);
/* 1: yes. Its account has too much to take already: negative, with the error that a call is answered with; 0, it is not answered at all. */
int bus_unread_may_answer(const BusLink *l, sd_bus_error *error);
bool bus_unread_has_room(const BusLink *l);
/* Whether a connection of its account has yet to say that it has read. */
bool bus_unread_is_asked(const BusLink *l);
void bus_unread_ask_account(const BusLink *l); /* all that have something to read, due or not */
/* It has what it was sent first, of that size. */
void bus_unread_taken(BusLink *l, BusUnread n);
uint64_t bus_unread_total(const BusLink *l);
void bus_unread_forget(BusLink *l);
/* As bus_unread_release(), and wakes nobody. */
void bus_unread_give_up(BusLink *l, uint64_t size);

/* bus-taken.c */
void bus_taken_look(const BusLink *l); /* what its account's connections have taken */
void bus_taken_look_at(BusLink *l);    /* it alone, if it has much to take, and not again at once */
void bus_taken_forget(BusLink *l);

/* bus-delayed.c */
typedef enum DelayReason {
        DELAY_ROOM,          /* for answers */
        DELAY_AUTHORIZATION, /* polkit is asked about as many of the account */
} DelayReason;
/* true: the call comes through again when there may be room for the answer, of so many bytes. false: it has waited, or cannot, and is refused. */
bool bus_delay(BusLink *l, sd_bus_message *m, DelayReason reason, uint64_t need);
void bus_delayed_came(BusLink *l, sd_bus_message *m); /* maybe it was delayed */
void bus_delayed_end(BusLink *l, sd_bus_message *m);  /* and is forgotten, unless it is delayed further */
void bus_delayed_wake(const BusLink *l, DelayReason reason); /* something happened, and there may be room for its account */
void bus_delayed_wake_account(Bus *b, uid_t uid, DelayReason reason);
/* Room was kept for a call that passes now: once it is seen what it needs, it may be another's. */
void bus_delayed_wake_later(BusLink *l);
void bus_delayed_wake_passed(BusLink *l);
void bus_delayed_forget(BusLink *l);
void bus_delayed_stop(Bus *b); /* forgets all */

/* subscribe.c: the observer that turns what happens into signals. */
int subscribe_begin(Bus *b);
void subscribe_end(Bus *b);
