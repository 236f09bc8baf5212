/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the bus's face share: a link is one connection with its client. */

#include <systemd/sd-bus.h>

#include "errandd/bus.h"
#include "errandd/session.h"
#include "shared/bus-error.h"
#include "shared/bus-object.h"
#include "shared/timespan.h"

typedef struct BusLink BusLink;
typedef struct Held Held;
typedef struct Operation Operation;
typedef struct OwnerEntry OwnerEntry;

/* What an object's handlers and getters get as userdata. */
typedef struct BusTarget {
        BusLink *link;    /* NULL when a signal is built */
        Session *session; /* of SESSION and GRANT */
        const Grant *grant;
        const StoredReceipt *receipt;
} BusTarget;

struct BusLink {
        Bus *bus;
        BusLink *next;
        sd_bus *connection;
        uid_t uid;
        bool subscribed;
        bool connected; /* it has just authenticated */
        bool dead;      /* gone: to be freed outside of its own callbacks */
        bool throttled; /* it does not read: nothing of it is read until it does */
        sd_event_source *throttle;
        BusTarget target;
        Session *admitted; /* whose object the gate let this message act on */
        StoredReceiptList receipt; /* the one that this message is about, looked up once */
        Held *held;
        size_t n_held;
        Operation *operations;
        size_t n_operations;
};

struct Bus {
        Manager *manager;
        Authorizer *authorizer;
        ConfigMode mode;
        int listen_fd;
        sd_event_source *accept, *tidy;
        BusLink *links;
        size_t n_links;
        Observer observer;
        OwnerEntry *owners; /* subscribe.c */
        size_t n_owners;
        bool ready;
};

/* Who sent a message that came over a link. */
Caller bus_link_caller(const BusLink *l);
bool bus_link_may_see(BusLink *l, const Session *s);
/* The session of that id if the caller may see it or was let through to it, else NULL. */
Session *bus_link_find(BusLink *l, const char *id);
/* The receipt of that number, whoever's session it is of. Borrowed until the next message. */
bool bus_link_receipt(BusLink *l, uint64_t number, const StoredReceipt **ret);

void bus_link_close(BusLink *l);
void bus_link_connected(BusLink *l);
/* Looks after a link that queues more than it takes. */
void bus_link_watch_queue(BusLink *l);
/* A call with a large answer, while answers are still to be taken: true, it comes through again when they are. */
bool bus_link_postpone(BusLink *l, sd_bus_message *m);

/* The error for a session, grant or receipt that is not there or not the caller's: the same words for both. */
int bus_not_found(sd_bus_error *error, const char *what);

/* Turns the fault of a function that returned r into the error, and ends it. */
int bus_fault(sd_bus_error *error, Fault *f, int r);

/* gate.c: sees every message of a link before libsystemd does. */
int gate_filter(sd_bus_message *m, void *userdata, sd_bus_error *error);
void gate_forget(BusLink *l); /* drops what waits for an authorization */

/* operation.c: a call that is answered later. */
int operation_new(BusLink *l, sd_bus_message *call, const char *result, Operation **ret, sd_bus_error *error);
Operation *operation_free(Operation *o); /* without an answer */
void operation_done(Session *s, const Fault *fault, int fd, void *userdata); /* a Done; answers and frees */
void operation_forget(BusLink *l);

/* subscribe.c: the observer that turns what happens into signals. */
int subscribe_begin(Bus *b);
void subscribe_end(Bus *b);

/* The vtables, and what finds the objects they belong to. userdata is the link. */
extern const sd_bus_vtable manager_vtable[], session_vtable[], grant_vtable[], receipt_vtable[];
int session_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *error);
int session_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret, sd_bus_error *error);
int grant_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *error);
int grant_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret, sd_bus_error *error);
int receipt_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *error);
int receipt_append_entries(sd_bus_message *m, const StoredReceipt *r);

/* CreateSession's options, in session-options.c. What it points to is the message's or its own. */
typedef struct ParsedOptions {
        SessionOptions options;
        char **command, **allow, **env;
} ParsedOptions;
int session_options_read(sd_bus_message *m, ParsedOptions *ret, sd_bus_error *error);
void session_options_done(ParsedOptions *o);
