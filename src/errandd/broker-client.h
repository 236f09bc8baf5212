/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One session's broker, as errandd starts it and speaks to it. In embedded mode it is a child, given its two sockets as socket activation would. */

#include "errandd/account.h"
#include "errandd/budgets.h"
#include "errandd/channel.h"
#include "errandd/credentials.h"
#include "errandd/grant-list.h"

typedef struct BrokerClient BrokerClient;

typedef struct BrokerHandler {
        /* count is of that host since it was last told; fresh, of all hosts since the last of these two calls: these add up */
        void (*refused)(const char *host, uint16_t port, uint64_t count, uint64_t fresh, void *userdata);
        void (*denied_summary)(uint64_t count, uint64_t hosts, uint64_t fresh, void *userdata);
        void (*grant_used)(uint32_t number, void *userdata);
        void (*receipt_failed)(void *userdata);
        void (*ended)(int status, void *userdata); /* the process is gone and reaped; status as waitpid(2) has it */
        void *userdata;
} BrokerHandler;

typedef struct BrokerStart {
        int directory;            /* where the session socket is made, as "session" */
        const Identity *payload;  /* who may connect to it; NULL: errandd's own account */
        const Identity *identity; /* who the broker is; NULL: the same */
        int log;                  /* its messages */
} BrokerStart;

/* Starts it. The callbacks come from the event loop only, and one may free the client. */
int broker_client_new(sd_event *event, const BrokerStart *start, const BrokerHandler *handler, BrokerClient **ret, Fault *f);
/* Ends the process at once, if it has not ended. */
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
int broker_client_grant(BrokerClient *b, const Grant *g, const GrantClock *now, ChannelReply reply, void *userdata);
int broker_client_revoke(BrokerClient *b, uint32_t number, ChannelReply reply, void *userdata);

/* Credential, stand-ins and listener are dead when reply comes. A broker that does not answer within a second is killed. */
int broker_client_close(BrokerClient *b, ChannelReply reply, void *userdata);

/* SIGTERM, and SIGKILL two seconds later: long enough for its receipts to be on disk. */
void broker_client_end(BrokerClient *b);
