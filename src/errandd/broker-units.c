/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/broker-process.h"
#include "errandd/channel.h"
#include "shared/session-id.h"

#define STARTED 1U /* the unit that is asked for: it has the control socket started before it, in one transaction that polkit is asked about once */
#define N_UNITS 3U
#define UNIT_NAME_MAX 64U

/* The sockets first: a service that is stopped before them would be started by whoever connects in between. */
static const struct {
        const char *prefix, *suffix;
} units[N_UNITS] = {{"errand-broker-control", ".socket"}, {"errand-broker", ".socket"}, {"errand-broker", ".service"}};

typedef struct ByUnits ByUnits;

typedef struct Part {
        ByUnits *whole;
        UnitJob *job;
} Part;

struct ByUnits {
        BrokerProcess process;
        sd_event *event;
        Units *units; /* borrowed */
        char session[SESSION_ID_MAX + 1];
        int directory;
        Part parts[N_UNITS];
        bool ending;
        char *how; /* why it ends */
        sd_event_source *begin;
};

int broker_unit_name(const char *session, char **ret) {
        return asprintf(ret, "errand-broker@%s.service", session) < 0 ? -ENOMEM : 0;
}

static void part_name(size_t i, const char *session, char ret[static UNIT_NAME_MAX]) {
        (void) snprintf(ret, UNIT_NAME_MAX, "%s@%s%s", units[i].prefix, session, units[i].suffix);
}

static void forget_jobs(ByUnits *u) {
        for (size_t i = 0; i < N_UNITS; i++)
                u->parts[i].job = unit_job_forget(u->parts[i].job);
}

static void by_units_free(BrokerProcess *p) {
        ByUnits *u = (ByUnits *) p;

        forget_jobs(u);
        sd_event_source_disable_unref(u->begin);
        safe_close(u->directory);
        sd_event_unref(u->event);
        free(u->how);
        free(u);
}

static bool any_job(const ByUnits *u) {
        for (size_t i = 0; i < N_UNITS; i++)
                if (u->parts[i].job)
                        return true;
        return false;
}

static int by_units_connect(BrokerProcess *p) {
        ByUnits *u = (ByUnits *) p;
        return channel_connect(u->directory, u->session, UID_ANY);
}

static void by_units_end(BrokerProcess *p);

static void end_because(ByUnits *u, const char *why) {
        if (!u->how)
                u->how = strdup(why);
        by_units_end(&u->process);
}

static int on_begin(_unused_ sd_event_source *source, void *userdata) {
        ByUnits *u = userdata;

        u->begin = sd_event_source_disable_unref(u->begin);
        if (u->ending) {
                u->process.handler.ended(u->how ?: "stopped", u->process.handler.userdata);
                return 0;
        }
        _cleanup_close_ int fd = by_units_connect(&u->process);
        if (fd >= 0) {
                u->process.handler.started(TAKE_FD(fd), u->process.handler.userdata);
                return 0;
        }
        _cleanup_free_ char *why = NULL;
        if (asprintf(&why, "its control socket cannot be reached: %s", strerror(-fd)) < 0)
                why = NULL;
        end_because(u, why ?: "out of memory");
        return 0;
}

static void begin_later(ByUnits *u) {
        int r = u->begin ? 0 : sd_event_add_defer(u->event, &u->begin, on_begin, u);
        if (r < 0)
                log_session_error_errno(r, u->session, "nothing can be done about its broker: %m");
}

static void on_started(const char *problem, void *userdata) {
        Part *part = userdata;
        ByUnits *u = part->whole;

        part->job = NULL;
        if (problem)
                end_because(u, problem);
        else if (!any_job(u))
                begin_later(u);
}

static void on_stopped(const char *problem, void *userdata) {
        Part *part = userdata;
        ByUnits *u = part->whole;

        part->job = NULL;
        if (problem)
                log_session_error(u->session, "%s", problem);
        if (!any_job(u))
                begin_later(u);
}

static int ask(ByUnits *u, size_t i, bool stop) {
        Part *part = &u->parts[i];
        char name[UNIT_NAME_MAX];

        part->whole = u;
        part_name(i, u->session, name);
        return stop ? units_stop(u->units, name, on_stopped, part, &part->job) : units_start(u->units, name, on_started, part, &part->job);
}

/* systemd sends SIGTERM, and SIGKILL after the unit's TimeoutStopSec=: the same for an end and for a kill. */
static void by_units_end(BrokerProcess *p) {
        ByUnits *u = (ByUnits *) p;

        if (u->ending)
                return;
        u->ending = true;
        forget_jobs(u);
        for (size_t i = 0; i < N_UNITS; i++) {
                int r = ask(u, i, true);
                if (r < 0)
                        log_session_error_errno(r, u->session, "a unit of its broker cannot be stopped: %m");
        }
        if (!any_job(u))
                begin_later(u);
}

void broker_units_stop(Units *u, const char *session) {
        for (size_t i = 0; i < N_UNITS; i++) {
                char name[UNIT_NAME_MAX];
                UnitJob *job = NULL;

                part_name(i, session, name);
                int r = units_stop(u, name, NULL, NULL, &job);
                if (r < 0)
                        log_error_errno(r, "%s cannot be stopped: %m", name);
                unit_job_forget(job);
        }
}

static const BrokerProcessClass by_units_class = {.connect = by_units_connect, .end = by_units_end, .kill = by_units_end, .free = by_units_free};

int broker_units_new(sd_event *event, const BrokerUnit *unit, const BrokerProcessHandler *handler, BrokerProcess **ret, Fault *f) {
        ByUnits *u = calloc(1, sizeof(ByUnits));

        if (!u)
                return fault_set(f, ERROR_SETUP, "out of memory");
        *u = (ByUnits){.process = {.class = &by_units_class, .handler = *handler}, .event = sd_event_ref(event), .units = unit->units};
        _cleanup_(broker_process_freep) BrokerProcess *p = &u->process;
        (void) snprintf(u->session, sizeof(u->session), "%s", unit->session);
        u->directory = fcntl(unit->directory, F_DUPFD_CLOEXEC, 3);
        int r = u->directory < 0 ? -errno : 0;
        if (unit->running && r >= 0)
                begin_later(u);
        if (!unit->running && r >= 0)
                r = ask(u, STARTED, false);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the broker's units cannot be asked for: %s", strerror(-r));
        *ret = TAKE_PTR(p);
        return 0;
}
