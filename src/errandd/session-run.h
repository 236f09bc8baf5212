/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of a session share: the session itself, and its run, which is there from Start until broker and shim are gone.
 *
 * The run of a session that an earlier errandd started is put together again from what is there (session-adopt.c).
 *
 * A run goes: begin (files, secrets, broker) → set up → launched → the events' "started" → "exited", or the shim gone without it → end (broker closed
 * and gone, shim gone) → finish (spool read to its end, record written, the world told). A failure anywhere goes to end at once. */

#include "errandd/broker-client.h"
#include "errandd/conversation.h"
#include "errandd/disk-watch.h"
#include "errandd/disk-work.h"
#include "errandd/events.h"
#include "errandd/idle-watch.h"
#include "errandd/launch-client.h"
#include "errandd/manager-private.h"
#include "errandd/session.h"
#include "errandd/shim-client.h"

typedef struct GrantWait GrantWait;
typedef struct GrantBatch GrantBatch;

typedef struct Waiter {
        struct Waiter *next;
        bool for_start; /* else for the end */
        Done done;
        void *userdata;
} Waiter;

/* The state of a run has three parts, each of which changes by itself:
 *
 *   phase    GOES → STOPS → ENDS, or at once to ENDS
 *   broker   NONE → BEGINS → WORKS ⇄ AWAY; from each of these → CLOSING → GONE, or at once to GONE. One that is adopted begins as AWAY
 *   shim     NONE → ASKED → RUNS → GONE; ASKED → NONE when the launch failed or is given up. One that is adopted begins as RUNS
 *
 * A run is over at ENDS with no broker (NONE, GONE) and no shim (NONE, GONE). */

typedef enum RunPhase {
        RUN_GOES,  /* is started, or at work */
        RUN_STOPS, /* Stop was asked: first the broker is closed, then the shim asked */
        RUN_ENDS,  /* whatever comes, it ends */
} RunPhase;

typedef enum BrokerState {
        BROKER_NONE,    /* not started, or there is no network */
        BROKER_BEGINS,  /* is started, and set up, with its grants right behind */
        BROKER_WORKS,   /* can be told something */
        BROKER_AWAY,    /* crashed or was not found yet, and may come back */
        BROKER_CLOSING, /* its credential dies, and it goes */
        BROKER_GONE,
} BrokerState;

typedef enum ShimState {
        SHIM_NONE,
        SHIM_ASKED, /* the launcher has the launch, and has not answered */
        SHIM_RUNS,
        SHIM_GONE,
} ShimState;

/* How errandd goes on trying to have a connection to the shim. */
typedef struct ShimLink {
        sd_event_source *again;
        usec_t pause;   /* before the next try but one */
        usec_t since;   /* monotonic: the last connection was made then */
        uint64_t breaks;
        bool strange;   /* somebody else was found in its place, and that was told */
        bool said;      /* that it cannot be reached */
} ShimLink;

typedef struct Run {
        Session *session;
        Credentials *credentials; /* until launch and set-up were handed over: then broker and shim have their own */
        char **allow;             /* what the broker is told */
        uint32_t *unrevoked;      /* grants whose revocation a broker was told, and may not have heard: its connection broke */
        size_t n_unrevoked;
        Config *config;           /* in force when it was started, or found again: a reload concerns the next one */
        SessionNetwork network;   /* of a run that this errandd launched */
        uint16_t port;            /* 0: no broker */
        Identity broker_identity;

        bool found;               /* an earlier errandd began it */
        RunPhase phase;
        BrokerState broker_state;
        bool broker_told;         /* its set-up has been sent: grants come behind it */
        BrokerClient *broker;     /* NULL: none, or gone */

        ShimState shim_state;
        ShimClient *shim;         /* NULL: cannot be asked, now or ever */
        Conversation *conversation; /* NULL: it is not talked to, or cannot be */
        int shim_pidfd;
        pid_t shim_pid;           /* its, while shim_end waits for that */
        sd_event_source *shim_end;
        ShimLink shim_link;
        bool shim_stops;          /* it has been asked to stop */
        bool shim_killed;         /* and, since it did not, been sent SIGKILL, which is repeated */
        int events;
        uint64_t events_taken; /* bytes */
        uint64_t events_damaged, events_damaged_told; /* lines */
        sd_event_source *events_watch;
        bool started, exited;     /* as the events say */
        char *exit_reason, *exit_text;
        uint64_t exit_status;
        usec_t exit_time;

        const char *why;          /* an exit reason of errandd's own: "disk", "idle", "setup"; NULL: nobody but the caller stopped it */
        char *why_text;           /* and the sentence for the transcript */
        DiskWatch *disk;
        IdleWatch *idle;          /* NULL: it may be idle */

        Fault fault;              /* why nothing ran */
        sd_event_source *deadline;
        Waiter *waiters;
} Run;

struct Session {
        Manager *manager;
        SessionRecord *record;
        GrantList grants;
        int project;      /* directory that CreateSession opened; -EBADF: opened by its path at Start */
        int stdio[3];     /* for the first Start */
        unsigned rows, columns;
        Run *run;
        unsigned settle;  /* further looks at the spool of a run that an earlier errandd left */
        bool changed;     /* the observer has not been told yet */
        bool collecting;
        struct DiskWork *settling; /* that writes its record to the disk; NULL: there is none, or it has begun */
        bool undone;      /* its start was cut short by an errandd's end: its launcher may be about to have a shim for it */
        GrantWait *grant_waits;  /* who hears of the next text of its grants */
        GrantBatch *grant_batch; /* of the one that is being written; NULL: none is */
        bool grants_telling;     /* these hear of it just now */
        bool grants_changed;     /* what has changed for good, and waits for the next text */
        usec_t grants_pause;                  /* 0: the disk took the last one */
        sd_event_source *grants_again;
        sd_event_source *expiry;
};

/* session.c */
int session_new(Manager *m, SessionRecord *record /* taken on success */, Session **ret);
/* The directory of its record, for the caller to close. Not held: sessions that are over may be thousands, and descriptors are not. */
int session_open_dir(const Session *s);
Session *session_free(Session *s); /* without a run */
/* Found by whoever reads from then on; on disk a little later (disk-work.h). */
int session_save(Session *s);
/* Record first, then the observer. A record that cannot be written is logged; the state counts all the same but for a start. */
int session_set_state(Session *s, SessionState state);
void session_touch(Session *s); /* the observer is told at the end of the loop's turn */
void session_tell_changed(Session *s); /* or now: what is told or answered next follows from it */
void session_notice(Session *s, const char *kind, const char *format, ...) _printf_(3, 4);
void session_notice_host(Session *s, const char *kind, const char *host, const char *format, ...) _printf_(4, 5);
/* Reads the spool on. */
int session_ingest(Session *s, bool final);

/* session-grant-file.c */
/* What s->grants has by then gets on disk; done (which may be NULL) hears whether, in the order in which they were asked, maybe before this returns. What it had
 * asked for it takes back itself on an error. */
int session_write_grants(Session *s, DiskDone done, void *userdata);
/* The same, tried until it works: what changed counts already. */
void session_write_grants_along(Session *s);
/* The session goes. told: who waits hears of it. */
void session_forget_grant_waits(Session *s, bool told);

/* session-grants.c */
int session_grants_to_broker(Session *s); /* which keeps those that it has */
/* 0: that is on disk, or is of no use any more. -EINPROGRESS: it is being written; to be told again. */
int session_grant_was_used(Session *s, uint32_t number, usec_t used);
void session_arm_expiry(Session *s);

/* What counts for this run, whatever is configured later: into the record, unless it is there already. */
void session_keep_limits(Session *s, const Config *c);

/* session-start.c */
int session_open_project(Session *s, Fault *f); /* s->project, if it is not open already */
int session_prepare_identity(Session *s, Identity *ret, Fault *f);
/* The launcher of the account that it runs as. */
int session_launcher(Session *s, LaunchClient **ret, Fault *f);
Run *run_new(Session *s);

/* session-broker.c */
int run_start_broker(Run *run, const Identity *payload, Fault *f);
int run_adopt_broker(Run *run, Fault *f);

/* session-adopt.c: a live record of an earlier errandd becomes a run again, or a state that is over */
int session_adopt(Session *s);

/* session-places.c: the project is open */
int session_check_places(Session *s, Fault *f);

/* STATE/ID/state, for the caller to close; no link in it. -ENOENT: nothing of it is left. */
int session_open_state(const Session *s);

/* The files that no session may read though they lie in what every one sees, as the kernel sees them. *ret is a list to free, or NULL. */
int session_hidden_places(const Manager *m, const Config *c, char ***ret);

/* session-launch.c */
int run_launch(Run *r, const Identity *payload, Fault *f);
/* The scope of a session of that id, with `unit` for its name. False: it gets none. */
bool run_plan_scope(const Manager *m, const Config *config, const char *id, char unit[static 64], LaunchScope *ret);
void run_read_events(Run *r);
/* Follows the events from where the record says on. */
int run_watch_events(Run *run);
/* Reads what there is to read, and acts on nothing. */
void run_take_lines(Run *run);

/* session-shim.c */
/* pidfd: the shim's, taken */
int run_watch_shim(Run *run, int pidfd);
/* Connects to the session's shim: a client in run->shim, or a negative errno. When the connection breaks it is made anew, while the shim is watched. */
int run_reach_shim(Run *run);
/* The same, and what there is to say to it follows, now or when it can be reached. It is watched. */
void run_connect_shim(Run *run);

/* session-conversation.c */
/* Its shim is there: where the session is talked to, that begins. */
void run_converse(Run *run);
/* Its shim cannot be asked any more. Each prompt has ended, and text says why; NULL: the next errandd goes on with them. */
void run_drop_shim(Run *run, const char *text);

/* session-stop.c */
void run_fail(Run *r, ErrorCode code, const char *format, ...) _printf_(3, 4);
void run_end(Run *r);
void run_broker_ended(Run *r, const char *how);
void run_scope_ended(Run *run);
/* Stops it by errandd's own doing, and says why: a notice, a line of the transcript, the exit reason. May free it. */
void run_stop_for(Run *run, const char *why, const char *format, ...) _printf_(3, 4);
/* Broker closed, then the shim asked: what a state of stopping means. */
void run_stop(Run *run);
/* The shim has been asked to stop, and may not have heard it. */
void run_repeat_stop(Run *run);
/* The run goes from memory, and what it stands for goes on. */
void run_leave(Session *s);
void run_check_finished(Run *r); /* may free it */
int run_add_waiter(Run *r, bool for_start, Done done, void *userdata);
void run_answer(Run *r, bool for_start, const Fault *fault);
void session_sweep_sockets(Session *s);
