/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A bus over socket pairs, with clients of chosen uids, all in one event loop: a call runs the loop until its answer is there. */

#include <systemd/sd-bus.h>
#include <unistd.h>

#include "errandd/bus.h"
#include "fake.h"
#include "shared/bus-object.h"

#define STRANGER 4000000000U /* C195: a uid that is negative when taken for signed */

typedef struct World {
        sd_event *event;
        Manager *manager;
        Bus *bus;
} World;

/* A caller reaches what is its own; whatever else is asked is held when hold is set, else denied. */
typedef struct TestAuthorizer {
        Authorizer authorizer;
        bool hold;
        unsigned checks, cancelled;
        AuthorizeDone done[64];
        void *userdata[64];
        size_t n_held;
        Permission permission;
} TestAuthorizer;
TestAuthorizer test_authorizer(void);
/* For its operator: nobody is one; as it comes, who runs the test. */
bool test_no_operator(Authorizer *a, uid_t uid);
/* What is a caller's own may be done; the rest waits while it is held, else it may not. */
int test_check_others(Authorizer *a, const AuthorizeRequest *q, AuthorizeDone done, void *userdata, void **ret_ticket);

World world_new(Authorizer *authorizer);
void world_done(World *w);
sd_bus *world_client(World *w, uid_t uid);
/* Runs what is pending, until nothing is. */
void world_settle(World *w);

typedef struct Reply {
        sd_bus_message *message; /* NULL: none came */
        bool failed;
        char error[64], text[512];
} Reply;
void reply_done(Reply *r);

extern const char *world_destination; /* of calls; NULL: there is no message bus */
sd_bus_message *call_new(sd_bus *client, const char *path, const char *interface, const char *member);
/* Sends it, takes it, and waits. */
Reply call_send(World *w, sd_bus *client, sd_bus_message *call);
Reply call(World *w, sd_bus *client, const char *path, const char *interface, const char *member, const char *types, ...);

/* For calls that are answered later. */
typedef struct Waiting {
        Reply reply;
        bool answered;
        sd_bus_slot *slot;
} Waiting;
void call_start(sd_bus *client, sd_bus_message *call, Waiting *w);
void waiting_done(Waiting *w);

/* What the object manager lists to that client. */
unsigned count_objects(World *w, sd_bus *client);

/* For sd_bus_add_filter(3): the Updates that a client is sent, with those that it is told it missed. */
typedef struct UpdateCount {
        unsigned texts, ends, missed_signals;
        uint64_t missed;
        bool unsubscribed;
} UpdateCount;
int count_updates(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* The name after org.errand1.Error., or what came instead. */
const char *reply_error(const Reply *r);
#define CHECK_ERROR(reply, name) CHECK_STR(reply_error(&(reply)), name)
#define CHECK_FINE(reply) CHECK_STR((reply).failed ? (reply).text : "fine", "fine")
