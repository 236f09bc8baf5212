/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <systemd/sd-daemon.h>

#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/authorizer-polkit.h"
#include "errandd/config-load.h"
#include "errandd/daemon.h"
#include "errandd/orphans.h"
#include "errandd/service.h"
#include "errandd/session.h"
#include "errandd/spare.h"
#include "errandd/state-unit.h"
#include "errandd/units.h"

typedef struct Service {
        Daemon daemon;
        sd_bus *connection;
        Units *units;
        Authorizer *authorizer; /* polkit's; NULL: the same account alone */
        bool lost;              /* the bus is gone */
        bool reloading;         /* a signal asked for it, so that the service manager waits for word of its end */
        bool refused;           /* the status says that what is there is */
} Service;

static void tell_ready(Service *s) {
        size_t live = 0;

        for (Session *i = NULL; (i = manager_next(s->daemon.manager, i));)
                live += session_state_live(session_state(i));
        (void) sd_notifyf(false, "READY=1\nSTATUS=Serving %s; %zu sessions were found running", BUS_NAME, live);
}

static void on_reloaded(const Fault *fault, void *userdata) {
        Service *s = userdata;

        if (!s->daemon.bus) /* it is leaving */
                return;
        if (fault) {
                daemon_log_fault(fault);
                log_error("the configuration before stays in force");
        } else
                daemon_log_report(&s->daemon);
        /* Else not for each that a client asks for: word to a service manager that takes none is waited for. */
        if (s->reloading || s->refused != (fault != NULL))
                (void) sd_notifyf(false, "%sSTATUS=Serving %s%s", s->reloading ? "READY=1\n" : "", BUS_NAME,
                                  fault ? "; the configuration that is there now is refused, the one before stays in force" : "");
        s->reloading = false;
        s->refused = fault;
}

static void reload(Service *s) {
        Fault f = {};

        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Reading the configuration again", (unsigned long long) now_monotonic());
        s->reloading = true;
        if (bus_reload(s->daemon.bus, NULL, NULL, &f) < 0) {
                on_reloaded(&f, s);
                fault_done(&f);
        }
}

static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Service *s = userdata;

        if (si->ssi_signo == SIGHUP) {
                reload(s);
                return 0;
        }
        log_info("signal %u: leaving; sessions that run go on", si->ssi_signo);
        (void) sd_notify(false, "STOPPING=1\nSTATUS=Leaving; sessions that run go on");
        return sd_event_exit(s->daemon.event, 0);
}

static void on_lost(void *userdata) {
        Service *s = userdata;

        log_error("the message bus is gone");
        s->lost = true;
        (void) sd_event_exit(s->daemon.event, 0);
}

static int add_signals(Service *s) {
        static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                int r = sd_event_add_signal(s->daemon.event, NULL, signals[i], on_signal, s);
                if (r < 0)
                        return r;
        }
        return sd_event_set_watchdog(s->daemon.event, true);
}

static int connect_bus(Service *s, ConfigMode mode, Fault *f) {
        int r = mode == CONFIG_SYSTEM ? sd_bus_open_system_with_description(&s->connection, "errandd") : sd_bus_open_user_with_description(&s->connection, "errandd");
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the %s bus cannot be reached: %s; this mode needs one, and errand run --embedded does without",
                                 mode == CONFIG_SYSTEM ? "system" : "session", strerror(-r));
        r = sd_bus_attach_event(s->connection, s->daemon.event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = units_new(s->connection, s->daemon.event, &s->units);
        return r < 0 ? fault_set(f, ERROR_SETUP, "the service manager cannot be asked: %s", strerror(-r)) : 0;
}

/* Everything is found and known before anybody can ask: the name comes last. */
static int begin(Service *s, const ServiceOptions *o, Fault *f) {
        Daemon *d = &s->daemon;

        int r = o->mode == CONFIG_SYSTEM ? paths_system(o->config, &d->paths, f) : paths_user(o->config, &d->paths, f);
        if (r >= 0)
                r = daemon_open(d, f);
        if (r >= 0)
                r = connect_bus(s, o->mode, f);
        if (r >= 0 && o->mode == CONFIG_SYSTEM && !streq(d->paths->state_named, PATHS_STATE_SYSTEM))
                r = state_unit_check(s->connection, d->paths->state_named, f);
        if (r >= 0)
                r = daemon_manage(d, s->units, f);
        if (r < 0)
                return r;
        if (o->polkit)
                r = authorizer_polkit_new(s->connection, manager_config(d->manager)->operator_uids, &s->authorizer);
        if (r >= 0)
                r = bus_new_on_bus(d->manager, s->connection, &(BusOptions){.authorizer = s->authorizer, .lost = on_lost, .reloaded = on_reloaded, .userdata = s}, &d->bus);
        if (r >= 0)
                r = add_signals(s);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the bus cannot be served: %s", strerror(-r));
        daemon_log_report(d);
        r = bus_request_name(s->connection, f);
        if (r >= 0)
                orphans_sweep(d->manager);
        if (r >= 0)
                spare_begin(d->manager);
        return r;
}

static int serve(Service *s, Fault *f) {
        tell_ready(s);
        int r = sd_event_loop(s->daemon.event);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the event loop failed: %s", strerror(-r));
        return s->lost ? fault_set(f, ERROR_SETUP, "without its message bus errandd leaves; sessions that run go on") : 0;
}

int service_check(const ServiceOptions *o) {
        _cleanup_(config_freep) Config *c = NULL;
        _cleanup_(paths_freep) Paths *p = NULL;
        Fault f = {};

        int r = o->mode == CONFIG_SYSTEM ? paths_system(o->config, &p, &f) : paths_user(o->config, &p, &f);
        if (r >= 0)
                r = config_load(p, NULL, &c, &f);
        if (r < 0)
                return daemon_fail(&f);
        for (char **warning = c->warnings; warning && *warning; warning++)
                log_warning("%s", *warning);
        return EXIT_STOPPED;
}

int service_run(const ServiceOptions *options) {
        Service s = {};
        Fault f = {};

        int r = begin(&s, options, &f);
        if (r >= 0)
                r = serve(&s, &f);
        int code = r < 0 ? daemon_fail(&f) : EXIT_STOPPED;
        s.daemon.bus = bus_free(s.daemon.bus);
        s.authorizer = authorizer_polkit_free(s.authorizer);
        s.daemon.manager = manager_free(s.daemon.manager); /* its brokers' jobs go before what carries them */
        s.units = units_free(s.units);
        if (s.connection)
                sd_bus_flush_close_unref(s.connection);
        daemon_done(&s.daemon);
        return code;
}
