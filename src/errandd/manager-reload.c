/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What reads a configuration while others are served: its file may lie on a mount whose server does not answer, and the names in it may be a directory's on
 * another host. One is read at a time, in a thread beside the loop; one that hangs is given up, and whoever waits behind it is told so. */

#include <stdatomic.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/config-check.h"
#include "errandd/config-load.h"
#include "errandd/manager-private.h"

#define LOOKUP_USEC (20 * USEC_PER_SEC) /* a caller on the bus waits for 25 */

/* The thread's: nothing of the manager's, which it may outlive. */
typedef struct Reading {
        Paths paths;
        char *file; /* of a check; NULL: it is a reload */
        atomic_uint stage;
        Fault fault;
        Config *config;
        ConfigCheck check;
        struct Lookup *lookup; /* the loop's */
} Reading;

typedef struct Lookup {
        struct Lookup *next;
        Manager *manager;
        Reading *reading;
        Work *work;
        sd_event_source *deadline;
        ReloadDone reloaded;
        CheckDone checked;
        void *userdata;
} Lookup;

/* By path and not by content: a configuration may hold keys, and keys do not travel over the bus. */
static void read_file(Reading *g) {
        _cleanup_free_ char *problem = NULL;
        _cleanup_close_ int fd = config_check_open(g->file, &problem);

        if (fd < 0)
                (void) fault_set(&g->fault, fd == -ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID_ARGUMENT, "%s", problem ?: "out of memory");
        else if (config_check(g->file, fd, g->paths.mode->config, &g->check) < 0)
                (void) fault_set(&g->fault, ERROR_CONFIGURATION, "%s cannot be checked: out of memory", g->file);
}

static void run(void *data) {
        Reading *g = data;

        atomic_store(&g->stage, CONFIG_STAGE_FILE);
        if (g->file)
                read_file(g);
        else
                (void) config_load(&g->paths, &g->stage, &g->config, &g->fault);
}

static void reading_free(void *data) {
        Reading *g = data;

        free(g->paths.config);
        free(g->paths.state);
        free(g->paths.state_named);
        free(g->file);
        fault_done(&g->fault);
        config_free(g->config);
        config_check_done(&g->check);
        free(g);
}

/* Off the list, and told; with a fault or what was found. */
static void end(Lookup *l, const Fault *fault, char *const *sentences) {
        for (Lookup **at = &l->manager->lookups_open; *at; at = &(*at)->next)
                if (*at == l) {
                        *at = l->next;
                        break;
                }
        sd_event_source_disable_unref(l->deadline);
        if (l->reloaded)
                l->reloaded(fault, l->userdata);
        else
                l->checked(sentences, fault, l->userdata);
        free(l);
}

static void on_read(void *data) {
        Reading *g = data;
        Lookup *l = g->lookup;

        if (!g->file && g->fault.code == ERROR_NONE && manager_take_config(l->manager, g->config, &g->fault) >= 0)
                g->config = NULL;
        end(l, g->fault.code != ERROR_NONE ? &g->fault : NULL, g->check.problems ?: g->check.findings);
}

static int on_overdue(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Lookup *l = userdata;
        const Reading *g = l->reading;
        const char *file = g->file ?: g->paths.config ?: "the configuration";
        unsigned seconds = (unsigned) (LOOKUP_USEC / USEC_PER_SEC);
        Fault f = {};

        switch ((ConfigStage) atomic_load(&g->stage)) {
        case CONFIG_STAGE_WAITS:
                (void) fault_set(&f, ERROR_CONFIGURATION, "%s was not read: an earlier reading of a configuration hangs still, on a file system or an account database that "
                                 "does not answer; see to that, and try again", file);
                break;
        case CONFIG_STAGE_HOST:
                (void) fault_set(&f, ERROR_CONFIGURATION, "%s was read, but the account database, or a file that it names, did not answer within %u s; getent passwd "
                                 "shows whether accounts can be looked up", file, seconds);
                break;
        default:
                (void) fault_set(&f, ERROR_CONFIGURATION, "%s, or a file that it names, was not read within %u s: its file system, or the account database, does not answer",
                                 file, seconds);
        }
        log_error("%s", f.text ?: "a configuration cannot be read in time");
        work_cancel(l->work);
        end(l, &f, NULL);
        fault_done(&f);
        return 0;
}

static int ask(Manager *m, const char *file, const Lookup *what, Fault *f) {
        static const WorkClass class = {.run = run, .done = on_read, .free = reading_free};
        Lookup *l = malloc(sizeof(Lookup));
        Reading *g = calloc(1, sizeof(Reading));

        int r = !l || !g || string_copy(file, &g->file) < 0 || string_copy(m->paths->config, &g->paths.config) < 0 ||
                        string_copy(m->paths->state, &g->paths.state) < 0 || string_copy(m->paths->state_named, &g->paths.state_named) < 0 ? -ENOMEM : 0;
        if (r >= 0) {
                g->paths.mode = m->paths->mode;
                g->paths.state_fd = m->paths->state_fd; /* that there is one counts */
                *l = *what;
                l->manager = m;
                l->reading = g;
                g->lookup = l;
                r = sd_event_add_time_relative(m->event, &l->deadline, CLOCK_MONOTONIC, LOOKUP_USEC, 0, on_overdue, l);
                if (r >= 0)
                        r = worker_do(m->lookups, &class, g, &l->work);
                if (r < 0)
                        sd_event_source_disable_unref(l->deadline);
        }
        if (r < 0) {
                if (g)
                        reading_free(g);
                free(l);
                return r == -EBUSY ? fault_set(f, ERROR_LIMIT, "%u readings of configurations wait already; try again in a moment", LOOKUPS_MAX)
                                   : fault_set(f, ERROR_CONFIGURATION, "the configuration cannot be read: %s", strerror(-r));
        }
        l->next = m->lookups_open;
        m->lookups_open = l;
        return 0;
}

int manager_reload(Manager *m, ReloadDone done, void *userdata, Fault *f) {
        return ask(m, NULL, &(Lookup){.reloaded = done, .userdata = userdata}, f);
}

int manager_check_file(Manager *m, const char *path, CheckDone done, void *userdata, Fault *f) {
        return ask(m, path, &(Lookup){.checked = done, .userdata = userdata}, f);
}

void manager_end_lookups(Manager *m) {
        while (m->lookups_open) {
                Fault f = {};
                (void) fault_set(&f, ERROR_WRONG_STATE, "errandd is leaving");
                end(m->lookups_open, &f, NULL);
                fault_done(&f);
        }
}
