/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Everything that errandd knows: configuration, records, receipts, sessions. Logic only: no type of the bus in here. The bus's face
 * (manager-bus.c, session-bus.c, …) calls these functions after it has authorized a caller, and watches through an observer. */

#include <systemd/sd-event.h>

#include "errandd/config.h"
#include "errandd/grant-list.h"
#include "errandd/record.h"
#include "errandd/store.h"
#include "errandd/update.h"

typedef struct Manager Manager;
typedef struct Session Session;

/* Who asks, as the gate found out. */
typedef struct Caller {
        uid_t uid;
        bool operator; /* may do what an owner may, and give what only an operator gives */
} Caller;

/* A failure as a client will see it: a name of org.errand1.Error and a sentence. */
typedef enum ErrorCode {
        ERROR_NONE,
        ERROR_INVALID_ARGUMENT,  /* org.errand1.Error.InvalidArgument   EINVAL */
        ERROR_NOT_FOUND,         /* …NotFound: not there and not yours are the same   ENOENT */
        ERROR_NOT_PERMITTED,     /* …NotPermitted   EPERM */
        ERROR_WRONG_STATE,       /* …WrongState: what a session's state forbids   EBUSY */
        ERROR_EXISTS,            /* …Exists   EEXIST */
        ERROR_LIMIT,             /* …LimitExceeded   EAGAIN */
        ERROR_CONFIGURATION,     /* …Configuration: the sentence holds every problem, a line each   EBADMSG */
        ERROR_NOT_ENFORCEABLE,   /* …NotEnforceable: a guarantee cannot be kept here   EOPNOTSUPP */
        ERROR_SETUP,             /* …SetupFailed: nothing was run   EIO */
        ERROR_STORAGE,           /* …Storage: record or database   EIO */
        _ERROR_CODE_MAX,
} ErrorCode;

typedef struct Fault {
        ErrorCode code;
        char *text; /* to free with fault_done() */
} Fault;

void fault_done(Fault *f);
/* Sets it (the first one stays) and returns the code's negative errno. */
int fault_set(Fault *f, ErrorCode code, const char *format, ...) _printf_(3, 4);

/* What the world is told. Every callback may be NULL. */
typedef struct Observer {
        void (*session_added)(Session *s, void *userdata);
        void (*session_removed)(const char *id, void *userdata);
        void (*session_changed)(Session *s, void *userdata); /* state, times or the refused count: coalesced once a loop iteration */
        void (*session_refused)(Session *s, const char *host, uint16_t port, uint64_t count, void *userdata);
        void (*session_notice)(Session *s, const char *kind, const char *text, void *userdata);
        void (*session_update)(Session *s, const Update *u, void *userdata); /* of its conversation */
        void (*session_exited)(Session *s, const char *reason, int status, void *userdata);
        void (*grant_added)(Session *s, const Grant *g, void *userdata);
        void (*grant_changed)(Session *s, const Grant *g, void *userdata);
        void (*grant_removed)(Session *s, uint32_t number, void *userdata);
        void *userdata;
} Observer;

/* paths.h says where things are and which mode it is; units (borrowed) is needed where brokers are units; config is taken on success. Opens records and
 * receipts, takes the lock (-EBUSY: another errandd), finds the sessions of an earlier errandd, starts or reaches the launcher, and probes. */
typedef struct Paths Paths;
typedef struct Units Units;
int manager_new(sd_event *event, const Paths *paths, Units *units, Config *config, Manager **ret, Fault *f);
Manager *manager_free(Manager *m); /* embedded: ends every live session first; else leaves them to the next errandd */
DEFINE_CLEANUP(Manager *, manager_free);
/* Asks every live session to stop, and starts none any more: what is left of them is seen by manager_next(). */
void manager_end(Manager *m);
void manager_observe(Manager *m, const Observer *o);

sd_event *manager_event(Manager *m);
const Config *manager_config(Manager *m);
/* Reads the file again, beside the loop; sessions that run keep what they were started with. done comes later, once, unless this fails: what hangs is given
 * up after a time, and told. */
typedef void (*ReloadDone)(const Fault *fault /* NULL: it is in force */, void *userdata);
int manager_reload(Manager *m, ReloadDone done, void *userdata, Fault *f);

/* What errandd --check would say of that file: problems, else findings. done as above, with a list to borrow. */
typedef void (*CheckDone)(char *const *sentences, const Fault *fault, void *userdata);
int manager_check_file(Manager *m, const char *path, CheckDone done, void *userdata, Fault *f);

/* The start-up report, a line each, and the gaps alone; both borrowed. */
char *const *manager_report(Manager *m);
char *const *manager_gaps(Manager *m);

Session *manager_find(Manager *m, const char *id); /* NULL when there is none */
/* All sessions, ordered by id: call with NULL for the first. */
Session *manager_next(Manager *m, Session *after);

/* System mode: whose the project of that name is, who made the first session in it; nobody's (UID_NONE) where that cannot be read. False where it has none yet,
 * and in the modes where a project is a directory. */
bool manager_project_owner(Manager *m, const char *project, uid_t *ret);

/* Brings in what the spools hold before it answers. */
int manager_receipts(Manager *m, const ReceiptFilter *filter, StoredReceiptList *ret, Fault *f);

/* fault: NULL when it is there. claimed: it was nobody's, and became the caller's for this call. True: the call was made again, which takes care of that. */
typedef bool (*ProjectDone)(const Fault *fault, bool claimed, void *userdata);

/* Options of CreateSession, checked for form by the bus's face and for authority here: a plain caller narrows only. */
typedef struct SessionOptions {
        const char *id;      /* NULL: minted */
        const char *project; /* system mode: a name below projectRoot; else an absolute path */
        int project_fd;      /* of it, when the caller passed one (not in system mode); else -EBADF */
        bool others;         /* system mode: the caller was let to use somebody else's project */
        bool own_project;    /* system mode: it wants one of its own, also where it may use others' */
        ProjectDone project_made; /* system mode; NULL: one that is missing, or nobody's, is an error */
        void *project_userdata;
        bool claimed;        /* as project_made told: nobody's again, before this fails */
        char *const *command; /* NULL: the configured agent's */
        const char *network; /* NULL: as configured */
        bool allow_given;
        char *const *allow;
        char *const *env;    /* KEY=VALUE */
        bool interactive;
        unsigned rows, columns;
        int stdio[3];        /* -EBADF: none; taken on success */
        const char *protocol; /* NULL: as configured for the configured command, else "none" */
        const char *provider, *model;
        const char *user;    /* whose rights it has, where errandd is root; NULL: as errandd was told, else by SUDO_UID and the project's owner */
} SessionOptions;

/* -EINPROGRESS: system mode, and a project of that name has to get its owner, or has to be made, first. Nothing of the session is there yet; project_made is
 * called once, later, and the call is to be made again when that tells no fault. */
int manager_create_session(Manager *m, const Caller *caller, SessionOptions *options, Session **ret, Fault *f);
