/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where an errandd keeps things, and where its programs are.
 *
 *             state                                                      runtime
 *   system    /var/lib/errand                                            /run/errand
 *   user      $XDG_STATE_HOME/errand                                     $XDG_RUNTIME_DIR/errand
 *   embedded  $XDG_STATE_HOME/errand-embedded                            $XDG_RUNTIME_DIR/errand, else errand-UID below $TMPDIR or /tmp
 *   the same, as root: /var/lib/errand-embedded                          /run/errand-embedded
 *
 * In the state: ID/, .records/, .damaged/, .projects/, receipts.db. In the runtime directory: embedded-shim/ and bus with errandd.log when it is embedded,
 * else shim/, launch, broker/ and, in user mode, session/. A state directory that was named (--state-dir, $ERRAND_EMBEDDED_STATE) has its runtime directory within it,
 * as .run. */

#include "errandd/manager.h"
#include "errandd/mode.h"

#define PATHS_STATE_SYSTEM "/var/lib/errand"
#define PATHS_RUNTIME_SYSTEM "/run/errand"
#define PATHS_CONFIG_SYSTEM "/etc/errand/errand.json"
#define PATHS_CONFIG_OWN_SHOWN "~/.config/errand/errand.json" /* as it is told to people */

struct Paths {
        const Mode *mode;
        uid_t uid;
        char *state, *runtime; /* absolute and without links, when opened */
        char *state_named;     /* the configuration's stateDir, where it counts; NULL: it names none */
        char *bus;             /* embedded: the private socket, RUNTIME/bus */
        char *config;          /* the configuration's file; NULL: there is none, so the defaults count */
        char *user;            /* embedded, as root: whose rights sessions have (--account); NULL: found out for each */
        int state_fd, runtime_fd;
        int log_fd;            /* for what launchers and shims say; -EBADF: standard error */
};

/* These say where without touching anything. config may be NULL: $ERRAND_CONFIG, else PATHS_CONFIG_SYSTEM for system mode and root, else
 * errand/errand.json below $XDG_CONFIG_HOME. One that was named must be there when it is read. */
int paths_embedded(const char *state_dir /* NULL: the usual */, const char *config, Paths **ret, Fault *f);
int paths_system(const char *config, Paths **ret, Fault *f);
int paths_user(const char *config, Paths **ret, Fault *f);
Paths *paths_free(Paths *p);
DEFINE_CLEANUP(Paths *, paths_free);

/* The configuration's stateDir, which may be NULL, takes the place of the usual one; not in embedded mode. */
int paths_name_state(Paths *p, const char *directory, Fault *f);

/* Opens both directories, made but in system mode. They must be errandd's own, or in system mode root's, reached without a link in the last place, and not writable for others. */
int paths_open(Paths *p, Fault *f);

/* Where bailey finds the broker of that session: ID/broker/session of the state, or session/ID of the runtime directory in user mode. To free. */
int paths_session_socket(const Paths *p, const char *id, char **ret);

/* RUNTIME/NAME, opened; made if need be but in system mode. */
int paths_open_runtime_dir(const Paths *p, const char *name);

/* A directory below one of them, made if need be, for that account. The group counts for a mode with the setgid bit alone. */
int paths_make_dir(int at, const char *name, mode_t mode, uid_t uid, gid_t gid);

/* An executable of ours, by descriptor, so that an account that cannot go there runs it too: below $ERRAND_LIBEXEC, beside the running
 * program, in the places of the build tree beside it, in the directory it is installed in. */
int paths_open_program(const char *name);

/* The path that a descriptor really leads to. */
int path_of_fd(int fd, char **ret);
