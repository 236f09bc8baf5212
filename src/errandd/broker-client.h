/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One session's broker, as errandd speaks to it, however it came to run (broker-process.h). One whose unit brings it back is connected to again. */

#include "errandd/broker-process.h"
#include "errandd/budgets.h"
#include "errandd/channel.h"
#include "errandd/credentials.h"
#include "errandd/grant-list.h"

typedef struct BrokerClient BrokerClient;

/* All but started and ended come of a broker that is set up, or being so: who only has one started leaves them NULL. */
typedef struct BrokerHandler {
        void (*started)(void *userdata); /* it waits for its set-up */
        void (*away)(void *userdata);    /* it crashed, and is waited for: nothing can be asked of it */
        /* It is there again, or found by an errandd that started after it, and does its work: of its grants it is to be told anew. port is that of
         * its listener in the session, 0 when it has none yet; fresh is what it refused and did not tell. */
        void (*back)(uint16_t port, uint64_t fresh, void *userdata);
        /* count is of that host since it was last told; fresh, of all hosts since the last of these two calls: these add up */
        void (*refused)(const char *host, uint16_t port, uint64_t count, uint64_t fresh, void *userdata);
        void (*denied_summary)(uint64_t count, uint64_t hosts, uint64_t fresh, void *userdata);
        void (*grant_used)(uint32_t number, void *userdata);
        void (*receipt_failed)(void *userdata);
        void (*ended)(const char *how, void *userdata); /* nothing of it is left; a phrase */
        void *userdata;
} BrokerHandler;

/* The callbacks come from the event loop only, and one may free the client. One of the two is given; a unit that runs already was set up. `refused` is
 * how many connections of it are counted already. */
int broker_client_new(sd_event *event, const BrokerSpawn *spawn, const BrokerUnit *unit, const char *session, uint64_t refused,
                      const BrokerHandler *handler, BrokerClient **ret, Fault *f);
/* It has started, waits for its set-up, and is not on its way out. */
bool broker_client_waits(const BrokerClient *b);
/* One that waits is somebody else's from now on, who sets it up. */
void broker_client_hand_over(BrokerClient *b, const BrokerHandler *handler);
/* A child is ended at once; units go on. */
BrokerClient *broker_client_free(BrokerClient *b);
DEFINE_CLEANUP(BrokerClient *, broker_client_free);

typedef struct BrokerSetup {
        const char *session;
        const Credentials *credentials;
        char *const *allow;
        bool allow_internal_any;      /* every internal literal; then the list does not matter */
        char *const *allow_internal;
        const uint16_t *ports;
        size_t n_ports;
        bool enforce_server_name;
        const SessionBudgets *budgets;
        int spool; /* append-only */
} BrokerSetup;

int broker_client_setup(BrokerClient *b, const BrokerSetup *setup, ChannelReply reply, void *userdata, Fault *f);

/* What is left of the grant counts from now; one that has ended is -ETIME. */
int broker_client_grant(BrokerClient *b, const Grant *g, const GrantClock *now, ChannelReply reply, ChannelDrop drop, void *userdata);
/* Those of the list that are given and in force, all at once; it keeps what it has of them. None is -ETIME. */
int broker_client_grants(BrokerClient *b, const GrantList *l, const GrantClock *now, ChannelReply reply, ChannelDrop drop, void *userdata);
int broker_client_revoke(BrokerClient *b, uint32_t number, ChannelReply reply, ChannelDrop drop, void *userdata);

/* Credential, stand-ins and listener are dead when reply comes. A broker that does not answer within a second is killed, and one that cannot be asked
 * at once. */
int broker_client_close(BrokerClient *b, ChannelReply reply, void *userdata);

/* SIGTERM, and SIGKILL two seconds later: long enough for its receipts to be on disk. ended() follows. */
void broker_client_end(BrokerClient *b);
