/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What manager.c shares with the sessions. */

#include "errandd/account.h"
#include "errandd/launch-client.h"
#include "errandd/manager.h"
#include "errandd/mode.h"
#include "errandd/paths.h"
#include "errandd/ports.h"
#include "errandd/project-tally.h"
#include "errandd/provider-lookup.h"
#include "errandd/report.h"
#include "errandd/turns.h"
#include "errandd/worker.h"

#define LAUNCHERS_MAX 16U /* accounts that payloads have; one but for root */

struct Manager {
        sd_event *event;
        const Paths *paths; /* borrowed */
        const Mode *mode;   /* the paths' */
        Units *units;       /* borrowed; where the mode has them */
        Config *config;
        int lock, records;  /* STATEDIR/.lock and .records */
        int sockets;        /* where shims listen, RUNTIME/shim say */
        int broker_sockets; /* RUNTIME/broker, where brokers are units */
        int owners;         /* STATEDIR/.projects, where projects are names */
        ProjectTally tally; /* of it */
        struct Claim *claims; /* that are being written down */
        Store *store;
        Ports ports;
        Turns turns; /* of sessions that are talked to */
        struct Spare *spare; /* NULL: none */
        usec_t spare_wait;  /* what the last one that failed made the next one wait for; 0: none did */
        Session **sessions; /* by id */
        size_t n_sessions;
        LaunchClient *launchers[LAUNCHERS_MAX];
        size_t n_launchers;
        Identity account;   /* whose rights sessions have when nothing else decides */
        char **probed_gaps;  /* as the launcher found them */
        char **network_gaps; /* and of a network without a broker, as far as the configuration wants one */
        bool scopes;        /* the launcher can make them */
        char **controllers; /* and limit these in them */
        char *probe_problem;
        bool probing, probed; /* a launcher has been asked; it has answered, whatever it said */
        Worker *disk;       /* what sleeps on the state directory's disk: disk-work.h */
        Worker *lookups;    /* and on the configuration's files and the account database: manager-reload.c */
        struct Lookup *lookups_open;
        ProviderLookup *lookup;
        char **lookup_warnings; /* what the last one found */
        Report report;
        struct DiskLook *disk_looks; /* that are under way */
        Observer observer;
        sd_event_source *tick, *defer;
        bool checkpoints;   /* a checkpoint of the store is under way */
        bool ending, failed; /* failed: to begin */
};

/* Of an account that sessions run as. Where errandd takes on accounts, one of which nothing is known yet is looked up, and nobody is served meanwhile: once for
 * each, and again at every start of a broker (account_unused()). Elsewhere none is after errandd has begun. */
int manager_identity(const Manager *m, uid_t uid, Identity *ret);
/* The launcher of that account, started if need be. */
int manager_launcher(Manager *m, const Identity *identity, LaunchClient **ret, Fault *f);
/* Where shims listen or, for an account that errandd takes on, UID in there: the fd is the caller's, *ret_path to free. */
int manager_shim_directory(Manager *m, const Identity *identity, int *ret_fd, char **ret_path);

int manager_add(Manager *m, Session *s);
void manager_remove(Manager *m, Session *s); /* out of the list; the caller frees it */
size_t manager_count_live(Manager *m);
/* manager-load.c: the records of an earlier errandd. */
int manager_load(Manager *m, Fault *f);
/* manager-project.c, where projects are names. Opened anew: the directory is the fd's from then on. */
int manager_open_project(Manager *m, const char *name, int *ret, Fault *f);
/* Has the launcher make it; done is called later, once, unless this fails. claimed: by this call, and given up when it cannot be made. */
int manager_make_project(Manager *m, const char *name, uid_t owner, bool claimed, ProjectDone done, void *userdata, Fault *f);
/* Whether that caller may make a session in the project of that name; *ret_new: it has no owner yet. */
int manager_check_project(Manager *m, const Caller *caller, const SessionOptions *o, bool *ret_new, Fault *f);
/* Makes a project that has no owner the caller's, and is done when that is on disk. One that is no operator has a bounded number of them. */
int manager_claim_project(Manager *m, const Caller *caller, const char *name, ProjectDone done, void *userdata, Fault *f);
/* A claim of that account's that no session came of: the name is anybody's again. Before the caller is told, who may look at once. */
void manager_give_project_up(Manager *m, const char *name, uid_t owner);
/* session-places.c: what errandd makes of STATE/ID before a session has anything there goes, if there is nothing else; else it stays. True: it has gone. */
bool session_places_remove_empty(Manager *m, const char *id);
/* uids that brokers have. */
size_t manager_broker_uids(Manager *m, uid_t *ret, size_t max);
/* The configuration that was read takes the place of the one in force; taken on success. */
int manager_take_config(Manager *m, Config *c, Fault *f);

/* manager-reload.c */
#define LOOKUPS_MAX 8U /* that wait for each other: they come from operators */
void manager_end_lookups(Manager *m);

void manager_schedule(Manager *m); /* observers are told after this turn of the loop */
void manager_tick_begin(Manager *m); /* a session lives: spools are read every second */

