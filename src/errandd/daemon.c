/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/log.h"
#include "errandd/config-load.h"
#include "errandd/daemon.h"
#include "errandd/report.h"
#include "shared/event-id.h"

static int exit_code(const Fault *f) {
        switch (f->code) {
        case ERROR_CONFIGURATION:
                return EXIT_CONFIGURATION;
        case ERROR_NOT_ENFORCEABLE:
                return EXIT_NOT_ENFORCEABLE;
        case ERROR_WRONG_STATE:
                return EXIT_SERVED_ALREADY;
        default:
                return EXIT_FAILED;
        }
}

/* The journal alone has a line more, by which the event is found. */
static void log_event(const Fault *f) {
        const char *event = f->code == ERROR_CONFIGURATION ? EVENT_CONFIGURATION_REFUSED : f->code == ERROR_NOT_ENFORCEABLE ? EVENT_GUARANTEE_MISSING : NULL;

        if (!event || !log_is_to_journal())
                return;
        log_with(LOG_LEVEL_ERROR, &(LogContext){.message_id = event}, "%s",
                 f->code == ERROR_CONFIGURATION ? "the configuration is refused" : "a guarantee cannot be enforced on this host");
        log_drain();
}

void daemon_log_fault(const Fault *f) {
        if (!f->text)
                log_oom();
        for (const char *line = f->text, *end; line; line = *end ? end + 1 : NULL) {
                end = line + strcspn(line, "\n");
                log_error("%.*s", (int) (end - line), line);
        }
}

int daemon_fail(Fault *f) {
        int code = exit_code(f);

        daemon_log_fault(f);
        log_event(f);
        fault_done(f);
        return code;
}

/* What it makes is its own account's alone; it holds keys, so that it leaves no core and nobody of its account reads its memory. */
static int settle_process(void) {
        sigset_t set;

        (void) umask(0077);
        (void) setsid(); /* a terminal's signals are for who sits there */
        if (chdir("/") < 0)
                return -errno;
        (void) prctl(PR_SET_DUMPABLE, 0);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

int daemon_open(Daemon *d, Fault *f) {
        int r = settle_process();
        if (r >= 0)
                r = config_load(d->paths, NULL, &d->config, f);
        if (r >= 0)
                r = paths_name_state(d->paths, d->config->state_dir, f);
        if (r >= 0)
                r = paths_open(d->paths, f);
        if (r >= 0)
                r = sd_event_new(&d->event);
        return r < 0 && f->code == ERROR_NONE ? fault_set(f, ERROR_SETUP, "%s", strerror(-r)) : r;
}

/* All of it goes one way into the journal, which does not keep the order of what reaches it by two. */
static void log_report(const Daemon *d) {
        for (char *const *line = manager_report(d->manager); line && *line; line++)
                log_info("%s", *line);
}

void daemon_log_report(const Daemon *d) {
        log_report(d);
        if (manager_gaps(d->manager) && log_is_to_journal())
                log_with(LOG_LEVEL_INFO, &(LogContext){.message_id = EVENT_GUARANTEE_MISSING}, "not every guarantee can be enforced on this host; errand report says which");
}

int daemon_manage(Daemon *d, Units *units, Fault *f) {
        int r = manager_new(d->event, d->paths, units, d->config, &d->manager, f);
        if (r < 0)
                return r;
        d->config = NULL;
        if (manager_config(d->manager)->sandbox.require_full_enforcement && manager_gaps(d->manager)) {
                log_report(d); /* the event follows with the fault */
                return fault_set(f, ERROR_NOT_ENFORCEABLE, "sandbox.requireFullEnforcement is true, which is the default; set it to false in %s to run "
                                 "without what is missing", d->paths->config ?: d->paths->mode->project_names || d->paths->uid == 0 ?
                                 PATHS_CONFIG_SYSTEM : PATHS_CONFIG_OWN_SHOWN);
        }
        return 0;
}

void daemon_done(Daemon *d) {
        bus_free(d->bus);
        manager_free(d->manager);
        config_free(d->config);
        sd_event_unref(d->event);
        paths_free(d->paths);
        *d = (Daemon){};
}
