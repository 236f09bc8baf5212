/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How a session's broker comes to run and ends: as a child, or as units of the service manager. What is said to it then is broker-client.h's. */

#include "errandd/account.h"
#include "errandd/units.h"

typedef struct BrokerProcess BrokerProcess;

typedef struct BrokerProcessHandler {
        void (*started)(int control, void *userdata);   /* once, when it can be spoken to; the connection is the callee's */
        void (*ended)(const char *how, void *userdata); /* once, when nothing of it is left, or nothing can be done about it: a phrase */
        void *userdata;
} BrokerProcessHandler;

typedef struct BrokerProcessClass {
        int (*connect)(BrokerProcess *p); /* again, to one that comes back by itself: an fd or a negative errno. NULL: none comes back */
        void (*end)(BrokerProcess *p);    /* asks it to; ended follows */
        void (*kill)(BrokerProcess *p);   /* at once; ended follows */
        void (*free)(BrokerProcess *p);   /* a child dies with it; units go on */
} BrokerProcessClass;

struct BrokerProcess {
        const BrokerProcessClass *class;
        BrokerProcessHandler handler;
};

static inline BrokerProcess *broker_process_free(BrokerProcess *p) {
        if (p)
                p->class->free(p);
        return NULL;
}
DEFINE_CLEANUP(BrokerProcess *, broker_process_free);

typedef struct BrokerSpawn {
        int directory;            /* where the session socket is made, as "session" */
        const Identity *payload;  /* who may connect to it; NULL: errandd's own account */
        const Identity *identity; /* who the broker is; NULL: the same */
        int log;                  /* its messages */
} BrokerSpawn;

/* A child of errandd's, given its two sockets as socket activation would. */
int broker_spawned_new(sd_event *event, const BrokerSpawn *spawn, const BrokerProcessHandler *handler, BrokerProcess **ret, Fault *f);

typedef struct BrokerUnit {
        Units *units;
        int directory; /* RUNTIME/broker, where the control socket appears by the session's name; borrowed, and dup'ed */
        const char *session;
        bool running;  /* an earlier errandd started it: it is connected to, and not started */
} BrokerUnit;

/* errand-broker@SESSION.socket, and the errand-broker-control@SESSION.socket that it requires, of which the first connection starts errand-broker@SESSION.service. */
int broker_units_new(sd_event *event, const BrokerUnit *unit, const BrokerProcessHandler *handler, BrokerProcess **ret, Fault *f);
/* Those of a session that nobody knows of; nobody waits for it. */
void broker_units_stop(Units *units, const char *session);
/* errand-broker@SESSION.service; to free. */
int broker_unit_name(const char *session, char **ret);
