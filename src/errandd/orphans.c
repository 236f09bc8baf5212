/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/broker-process.h"
#include "errandd/orphans.h"
#include "errandd/session-run.h"

/* A session that is over, or whose record nobody can read, may still run: what was set aside, say, or came back with a backup. */
static bool has_run(Manager *m, const char *id) {
        const Session *s = manager_find(m, id);

        return s && s->run;
}

static void stop_shim(Manager *m, const char *id) {
        _cleanup_(shim_client_freep) ShimClient *shim = NULL;

        int r = shim_client_new(m->event, m->sockets, id, m->account.uid, NULL, NULL, &shim);
        if (r == -ECONNREFUSED) { /* nobody listens; only the account of shims may remove it, and its next shim does */
                (void) unlinkat(m->sockets, id, 0);
                return;
        }
        if (r >= 0)
                r = shim_client_stop(shim, m->config->sandbox.grace_period, "errandd has no record of this session that can be read, so it was stopped", NULL, NULL);
        if (r < 0)
                log_session_error_errno(r, id, "something listens as its shim, errandd has no record of it, and it cannot be stopped: %m");
        else
                log_session_warning(id, "it runs, and errandd has no record of that: it is stopped");
}

static void stop_broker(Manager *m, const char *id) {
        log_session_info(id, "it has a broker and no record, as one that waited for a session to come (limits.brokersAhead): its units are stopped");
        broker_units_stop(m->units, id);
}

/* For each name in that directory that a session could have, and that stands for nothing. */
static void for_each_orphan(Manager *m, int directory, bool (*known)(Manager *m, const char *id), void (*act)(Manager *m, const char *id)) {
        DIR *d = fd_opendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

        if (!d) {
                log_warning_errno(errno, "what earlier sessions left cannot be looked for: %m");
                return;
        }
        for (struct dirent *e; (e = readdir(d));)
                if (session_id_valid(e->d_name) && !known(m, e->d_name))
                        act(m, e->d_name);
        closedir(d);
}

static bool has_session(Manager *m, const char *id) {
        return manager_find(m, id);
}

/* Somebody's home is in it, and nobody can say whose: it is for a person to look at. */
static void tell_state(Manager *m, const char *id) {
        if (session_places_remove_empty(m, id))
                return;
        log_warning("%s/%s is what session %s kept, of which there is no record; no session gets that id before it is moved away", m->paths->state, id, id);
}

void orphans_sweep(Manager *m) {
        if (!m->mode->units)
                return;
        for_each_orphan(m, m->sockets, has_run, stop_shim);
        for_each_orphan(m, m->broker_sockets, has_run, stop_broker);
        for_each_orphan(m, m->paths->state_fd, has_session, tell_state);
}
