/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What manager.c shares with the sessions. */

#include "errandd/account.h"
#include "errandd/launch-client.h"
#include "errandd/manager.h"
#include "errandd/paths.h"
#include "errandd/ports.h"
#include "errandd/provider-lookup.h"
#include "errandd/report.h"

#define LAUNCHERS_MAX 16U /* accounts that payloads have; one but for root */

struct Manager {
        sd_event *event;
        const Paths *paths; /* borrowed */
        Config *config;
        int lock, records;  /* STATEDIR/.lock and .records */
        int sockets;        /* RUNTIME/shim */
        Store *store;
        Ports ports;
        Session **sessions; /* by id */
        size_t n_sessions;
        LaunchClient *launchers[LAUNCHERS_MAX];
        size_t n_launchers;
        Identity account;   /* whose rights sessions have when nothing else decides */
        char **probed_gaps;
        char *probe_problem;
        ProviderLookup *lookup;
        char **lookup_warnings; /* what the last one found */
        Report report;
        Observer observer;
        sd_event_source *tick, *defer;
        bool ending;
};

/* The launcher of that account, started if need be. */
int manager_launcher(Manager *m, const Identity *identity, LaunchClient **ret, Fault *f);
/* RUNTIME/shim or, for another account than errandd's, RUNTIME/shim/UID: the fd is the caller's, *ret_path to free. */
int manager_shim_directory(Manager *m, const Identity *identity, int *ret_fd, char **ret_path);

int manager_add(Manager *m, Session *s);
void manager_remove(Manager *m, Session *s); /* out of the list; the caller frees it */
size_t manager_count_live(Manager *m);
/* manager-load.c: the records of an earlier errandd. */
int manager_load(Manager *m, Fault *f);
/* uids that brokers have. */
size_t manager_broker_uids(Manager *m, uid_t *ret, size_t max);
void manager_schedule(Manager *m); /* observers are told after this turn of the loop */
void manager_tick_begin(Manager *m); /* a session lives: spools are read every second */

