/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the ways to run differ in, beside the bus: one table, so that nothing else asks who it runs as. */

#include "errandd/account.h"
#include "errandd/config.h"

typedef struct Mode {
        ConfigMode config;
        const char *name;      /* "system", "user", "embedded" */
        bool changes_account;  /* embedded, as root: sessions and brokers have other accounts, which errandd takes on for them */
        bool units;            /* brokers are units and the launcher listens: what runs outlives errandd, which finds it again */
        bool project_names;    /* a project is a name below projectRoot, and has an owner; else a directory of the caller's */
        bool session_sockets;  /* the sockets of brokers for their sessions are in RUNTIME/session; else each in STATE/ID/broker */
        const char *payload;   /* the account that every session has; NULL: errandd's own, or decided for each */
        const char *described; /* where root's files say what units' sessions are, ID.json: their ids are not for everybody. NULL: all are one account's */
        const char *shims;     /* RUNTIME/NAME, where shims listen: user and embedded mode share the runtime directory, and neither takes the other's */
        mode_t top;            /* of state and runtime directory; 0: made by others, and not writable for anybody else */
        mode_t own, broker;    /* of STATE/ID, STATE/ID/broker. With the setgid bit they have the payload's group */
        mode_t state;          /* of STATE/ID/state: with the setgid bit errandd's, for the payload's group, else the payload's own */
} Mode;

/* uid is that of errandd. */
const Mode *mode_of(ConfigMode config, uid_t uid);

/* Whom the payload of a session in that project (-EBADF: in none) runs as; user is --account's, or NULL. */
int mode_decide_account(const Mode *m, const char *user, int project, Identity *ret, AccountReason *ret_reason, Fault *f);

/* Whether that account can work in the directory; a sentence in *f when not. */
int mode_check_project(const Mode *m, const Identity *i, int project, const char *path, Fault *f);

/* STATE/ID and the two directories in it, made if need be: an fd or a negative errno. */
int mode_open_own(const Mode *m, int state_fd, const char *id, const Identity *payload);
int mode_open_broker(const Mode *m, int own, const Identity *payload);
int mode_open_state(const Mode *m, int own, const Identity *payload);
