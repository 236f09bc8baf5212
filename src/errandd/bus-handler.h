/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an object's handlers need of the bus's face: who calls, what they may see, and what to answer with. How messages come and go is bus-link.h's. */

#include <systemd/sd-bus.h>

#include "errandd/say.h"
#include "errandd/session.h"
#include "shared/bus-error.h"
#include "shared/bus-object.h"

typedef struct BusLink BusLink; /* one client: on a connection of its own, or of a unique name */

/* What an object's handlers and getters get as userdata. */
typedef struct BusTarget {
        BusLink *link;    /* NULL when a signal is built */
        Session *session; /* of SESSION and GRANT */
        const Grant *grant;
        const StoredReceipt *receipt;
} BusTarget;

/* Of the userdata that finders and enumerators of objects get: who sent the message in hand. NULL: whoever it was has gone. */
BusLink *bus_link_of(void *userdata);
/* A finder's result: t, until the next message. */
void *bus_link_set_target(BusLink *l, BusTarget t);

Manager *bus_link_manager(const BusLink *l);
Caller bus_link_caller(const BusLink *l);
bool bus_link_may_see(BusLink *l, const Session *s);
/* The session of that id if the caller may see it or was let through to it, else NULL. */
Session *bus_link_find(BusLink *l, const char *id);
/* The receipt of that number, whoever's session it is of. Borrowed until the next message. */
bool bus_link_receipt(BusLink *l, uint64_t number, const StoredReceipt **ret);
/* What Say says: the gate has read it, and lets nothing else through. Borrowed until the next message. */
const Say *bus_link_said(const BusLink *l);

/* The session that it has just made it will most likely start next. */
void bus_link_foresee_start(BusLink *l, Session *s);
/* Sends the reply and counts it for who may not read it. */
int bus_link_answer(BusLink *l, sd_bus_message *reply);
/* Counts bytes of an answer that is sent in another way and may have more than BUS_UNREAD_CALL_BYTES. */
void bus_unread_add_answer(BusLink *l, size_t size);
/* Keeps room for an answer that comes later, and gives that up. */
void bus_unread_reserve(BusLink *l, uint64_t size);
void bus_unread_release(BusLink *l, uint64_t size);
void bus_unread_add_objects(BusLink *l, size_t n); /* that libsystemd will list */

int bus_link_subscribe(BusLink *l, sd_bus_error *error);
void bus_link_unsubscribe(BusLink *l);

/* Of errandd itself. */
bool bus_link_is_ready(const BusLink *l);
int bus_link_reload(BusLink *l, ReloadDone done, void *userdata, Fault *f);

/* The error for a session, grant or receipt that is not there or not the caller's: the same words for both. */
int bus_not_found(sd_bus_error *error, const char *what);
/* Turns the fault of a function that returned r into the error, and ends it. */
int bus_fault(sd_bus_error *error, Fault *f, int r);
