/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A private message bus: a real dbus-daemon with a system bus's policy and limits, the bus's face on one connection to it, clients of chosen accounts
 * on others, all but the daemon in one event loop. */

#include "world.h"

typedef struct MessageBus {
        World world; /* without a bus: face is it */
        char directory[64], address[96];
        pid_t daemon;
        sd_bus *service; /* errandd's connection */
        unsigned lost;   /* how often the face told that the bus has gone */
} MessageBus;

/* Of a client that is neither root nor errandd's account, where the test can have such a one; else its own. */
uid_t message_bus_account(void);
/* Of another one: the owner of b2 in these tests; an ordinary account has none but its own. dbus-daemon refuses uids without an entry in the account
 * database, so both have one everywhere (nobody, bin). */
uid_t message_bus_stranger(void);

MessageBus *message_bus_new(void);
/* From here on one daemon serves every message bus of this process, one after the other, until message_bus_end_daemon(). */
void message_bus_keep_daemon(void);
void message_bus_end_daemon(void);
/* The face, not named yet; NULL: authorizer_same_uid(). */
void message_bus_serve(MessageBus *b, Authorizer *a);
void message_bus_name(MessageBus *b);
MessageBus *message_bus_free(MessageBus *b);

/* What most tests begin and end with: the face under its name, and a client of message_bus_account(). */
sd_bus *message_bus_begin(MessageBus *b, Authorizer *a);
void message_bus_end(MessageBus **b, sd_bus **client);

/* Its unique name is there; calls of it go to errandd's name. */
sd_bus *message_bus_client(MessageBus *b, uid_t uid);
/* The same of a connection that is made to be called, with a name on the bus. */
sd_bus *message_bus_service(MessageBus *b, const char *name);
/* Runs the loop until the daemon has answered a question of that connection, and so has sent on all that came before. */
void message_bus_settle(MessageBus *b, sd_bus *client);
void message_bus_stop_daemon(MessageBus *b);
