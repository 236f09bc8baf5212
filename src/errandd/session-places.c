/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where a session works, its project and the paths of sandbox.policyExtra, and what it must not reach there: state and sockets in either
 * direction, since a session in a directory of the state is as bad as one around it; the configuration and the files of keys. */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/path.h"
#include "basic/text.h"
#include "errandd/policy-writer.h"
#include "errandd/session-run.h"

/* As the kernel sees it; one that is not there is compared as it is written. */
static char *settle(const char *path) {
        return realpath(path, NULL) ?: strdup(path);
}

static int check_own(const char *what, const char *place, const char *own, Fault *f) {
        if (!path_beneath(own, place) && !path_beneath(place, own))
                return 0;
        return fault_set(f, ERROR_INVALID_ARGUMENT,
                         "%s %s %s errand's own %s; a session may not reach the records: start in a directory of the project alone, or move "
                         "the state: stateDir in the configuration, or embedded --state-dir", what, place, path_beneath(own, place) ? "holds" : "lies in", own);
}

static int check_file(const char *what, const char *place, const char *file, const char *holds, Fault *f) {
        if (!file)
                return 0;
        _cleanup_free_ char *path = settle(file);
        if (!path)
                return fault_set(f, ERROR_SETUP, "out of memory");
        /* By its link or by what that names: either is enough to read it, or to put another in its place. */
        if (!path_beneath(path, place) && !path_beneath(file, place))
                return 0;
        return fault_set(f, ERROR_INVALID_ARGUMENT, "%s %s holds %s, %s; a session may not reach it: move that file elsewhere", what, place, holds,
                         file);
}

static int check_configuration(const char *what, const char *place, Fault *f) {
        if (!path_beneath(place, POLICY_OWN_CONFIGURATION))
                return 0;
        return fault_set(f, ERROR_INVALID_ARGUMENT, "%s %s is errand's own, and no session may reach it: choose another directory", what, place);
}

static int check_place(const Manager *m, const char *what, const char *place, Fault *f) {
        const SecretSource *source;

        int r = check_own(what, place, m->paths->state, f);
        if (r >= 0)
                r = check_own(what, place, m->paths->runtime, f);
        if (r >= 0)
                r = check_configuration(what, place, f);
        if (r >= 0)
                r = check_file(what, place, m->paths->config, "errand's configuration", f);
        for (size_t i = 0; r >= 0 && (source = config_secret_source(m->config, i)); i++)
                r = source->kind == SECRET_SOURCE_FILE ? check_file(what, place, source->name, "a key's file", f) : 0;
        return r;
}

int session_check_places(Session *s, Fault *f) {
        const ConfigSandbox *c = &s->manager->config->sandbox;
        char *const *const lists[] = {c->policy_extra.read, c->policy_extra.write, c->policy_extra.execute};
        _cleanup_free_ char *project = NULL;

        int r = path_of_fd(s->project, &project);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the project of session %s has gone: %s", s->record->id, strerror(-r));
        r = check_place(s->manager, "the project", project, f);
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                for (char *const *path = lists[i]; r >= 0 && path && *path; path++) {
                        _cleanup_free_ char *place = settle(*path);
                        r = place ? check_place(s->manager, "sandbox.policyExtra:", place, f) : fault_set(f, ERROR_SETUP, "out of memory");
                }
        return r;
}

static int hide(const char *file, char ***list) {
        if (!file)
                return 0;
        _cleanup_free_ char *path = settle(file);
        return path ? strv_extend(list, path) : -ENOMEM;
}

int session_hidden_places(const Manager *m, const Config *c, char ***ret) {
        const SecretSource *source;
        char **list = NULL;

        int r = hide(m->paths->config, &list);
        for (size_t i = 0; r >= 0 && (source = config_secret_source(c, i)); i++)
                r = source->kind == SECRET_SOURCE_FILE ? hide(source->name, &list) : 0;
        if (r < 0) {
                strv_free(list);
                return r;
        }
        *ret = list;
        return 0;
}

int session_open_state(const Session *s) {
        _cleanup_close_ int own = openat(s->manager->paths->state_fd, s->record->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int fd = own < 0 ? -1 : openat(own, "state", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

bool session_places_remove_empty(Manager *m, const char *id) {
        _cleanup_close_ int own = openat(m->paths->state_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (own >= 0) {
                (void) unlinkat(own, "broker/session", 0);
                (void) unlinkat(own, "broker", AT_REMOVEDIR);
        }
        return unlinkat(m->paths->state_fd, id, AT_REMOVEDIR) >= 0 || errno == ENOENT;
}
