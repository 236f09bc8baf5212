/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where an errandd in embedded mode keeps things, and where its programs are.
 *
 *   state     $XDG_STATE_HOME/errand-embedded, as root /var/lib/errand-embedded: ID/, .records/, receipts.db
 *   runtime   $XDG_RUNTIME_DIR/errand, else errand-UID below $TMPDIR or /tmp, as root /run/errand-embedded: bus, shim/, errandd.log
 *
 * A state directory that was named (--state-dir, $ERRAND_EMBEDDED_STATE) has its runtime directory within it, as .run. */

#include "errandd/manager.h"

struct Paths {
        uid_t uid;
        char *state, *runtime; /* absolute and without links, when opened */
        char *bus;             /* the private socket: RUNTIME/bus */
        char *config;          /* the configuration's file; NULL: there is none, so the defaults count */
        char *user;            /* as root: whose rights sessions have (--user); NULL: found out for each */
        int state_fd, runtime_fd;
        int log_fd;            /* for what launchers and shims say; -EBADF: standard error */
};

/* Says where without touching anything; state_dir and config may be NULL. config that is given must be there when it is read. */
int paths_embedded(const char *state_dir, const char *config, Paths **ret, Fault *f);
Paths *paths_free(Paths *p);
DEFINE_CLEANUP(Paths *, paths_free);

/* Makes and opens both directories. They must be the caller's own, reached without a link in the last place, and not writable for others. */
int paths_open(Paths *p, Fault *f);

/* A directory below one of them, made if need be, for that account: mode 0700, or 0711 for what others have to go through. */
int paths_make_dir(int at, const char *name, mode_t mode, uid_t uid, gid_t gid);

/* An executable of ours, by descriptor, so that an account that cannot go there runs it too: below $ERRAND_LIBEXEC, beside the running
 * program, in the places of the build tree beside it, in the directory it is installed in. */
int paths_open_program(const char *name);

/* The path that a descriptor really leads to. */
int path_of_fd(int fd, char **ret);
