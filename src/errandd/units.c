/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/units.h"

#define SYSTEMD_NAME "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER "org.freedesktop.systemd1.Manager"

struct Units {
        sd_bus *bus;
        sd_event *event;
        sd_bus_slot *removed; /* the match, there before any job is asked for */
        UnitJob *jobs;
};

struct UnitJob {
        Units *units;
        UnitJob *next;
        char *name;
        char *path, *sender; /* of the job, and the unique name of whoever took it on, once they are known */
        bool stop;
        UnitDone done;
        void *userdata;
        sd_bus_slot *call;
        sd_event_source *patience;
};

UnitJob *unit_job_forget(UnitJob *j) {
        if (!j)
                return NULL;
        for (UnitJob **at = &j->units->jobs; *at; at = &(*at)->next)
                if (*at == j) {
                        *at = j->next;
                        break;
                }
        sd_bus_slot_unref(j->call);
        sd_event_source_disable_unref(j->patience);
        free(j->name);
        free(j->path);
        free(j->sender);
        return mfree(j);
}

_printf_(2, 3) static void finish(UnitJob *j, const char *format, ...) {
        _cleanup_free_ char *text = format ? string_format_own(format) : NULL;
        UnitDone done = j->done;
        void *userdata = j->userdata;

        (void) unit_job_forget(j);
        if (done)
                done(format ? text ?: "out of memory" : NULL, userdata);
}

/* What systemd calls the ends of a job, for who reads it. */
static const char *explain_result(const char *result) {
        static const struct {
                const char *result, *words;
        } table[] = {
                {"canceled", "another job for it came in between"},
                {"timeout", "it took too long"},
                {"failed", "it failed"},
                {"dependency", "a unit that it needs failed"},
                {"skipped", "it does not apply now"},
                {"invalid", "its job does not apply"},
                {"collected", "its job was dropped"},
                {"assert", "an assertion of it does not hold"},
                {"unsupported", "systemd cannot run such a unit here"},
                {"once", "it runs once only and has run"},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (streq(table[i].result, result))
                        return table[i].words;
        return "systemd gave no reason that is known here";
}

/* A signal that is sent to errandd alone passes every rule, libsystemd's included, which takes any sender for a well-known name: only who
 * took the job on says how it ended. */
static int on_removed(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const char *path, *unit, *result;
        Units *u = userdata;

        if (sd_bus_message_read(m, "uoss", NULL, &path, &unit, &result) < 0)
                return 0;
        for (UnitJob *j = u->jobs; j; j = j->next) {
                if (!streq_ptr(j->path, path) || !streq_ptr(j->sender, sd_bus_message_get_sender(m) ?: ""))
                        continue;
                bool fine = streq(result, "done") || (j->stop && streq(result, "skipped"));
                if (fine)
                        finish(j, NULL);
                else
                        finish(j, "%s cannot be %s: %s; systemctl status %s says more", j->name, j->stop ? "stopped" : "started", explain_result(result), j->name);
                return 0;
        }
        return 0;
}

static int on_reply(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        UnitJob *j = userdata;
        const char *path;

        j->call = sd_bus_slot_unref(j->call);
        if (!e && sd_bus_message_read(m, "o", &path) >= 0 && (j->path = strdup(path)) && (j->sender = strdup(sd_bus_message_get_sender(m) ?: "")))
                return 0;
        if (e && j->stop && streq_ptr(e->name, SYSTEMD_NAME ".NoSuchUnit"))
                finish(j, NULL);
        else if (e && (streq_ptr(e->name, SD_BUS_ERROR_ACCESS_DENIED) || streq_ptr(e->name, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED)))
                finish(j, "%s cannot be %s: polkit does not let this account; errand's rule (errand.rules) is not installed or polkit is not running",
                       j->name, j->stop ? "stopped" : "started");
        else
                finish(j, "%s cannot be %s: %s", j->name, j->stop ? "stopped" : "started", e ? e->message ?: e->name : "systemd's answer was not understood");
        return 0;
}

static int on_patience(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        UnitJob *j = userdata;

        finish(j, "%s was not %s in time; systemctl status %s says more", j->name, j->stop ? "stopped" : "started", j->name);
        return 0;
}

static int ask(Units *u, const char *name, bool stop, UnitDone done, void *userdata, UnitJob **ret) {
        UnitJob *j = calloc(1, sizeof(UnitJob));

        if (!j)
                return -ENOMEM;
        *j = (UnitJob){.units = u, .next = u->jobs, .name = strdup(name), .stop = stop, .done = done, .userdata = userdata};
        u->jobs = j;
        int r = j->name ? sd_event_add_time_relative(u->event, &j->patience, CLOCK_MONOTONIC, UNITS_JOB_USEC, 0, on_patience, j) : -ENOMEM;
        if (r >= 0)
                r = sd_bus_call_method_async(u->bus, &j->call, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, stop ? "StopUnit" : "StartUnit", on_reply, j, "ss",
                                             name, "replace");
        if (r < 0) {
                (void) unit_job_forget(j);
                return r;
        }
        if (ret)
                *ret = j;
        return 0;
}

int units_start(Units *u, const char *name, UnitDone done, void *userdata, UnitJob **ret) {
        return ask(u, name, false, done, userdata, ret);
}

int units_stop(Units *u, const char *name, UnitDone done, void *userdata, UnitJob **ret) {
        return ask(u, name, true, done, userdata, ret);
}

static int on_matched(sd_bus_message *m, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);

        if (e)
                log_error("systemd's jobs cannot be followed: %s", e->message ?: e->name);
        return 0;
}

int units_new(sd_bus *bus, sd_event *event, Units **ret) {
        _cleanup_(units_freep) Units *u = calloc(1, sizeof(Units));

        if (!u)
                return -ENOMEM;
        u->bus = sd_bus_ref(bus);
        u->event = sd_event_ref(event);
        /* The bus takes what is sent in its order, so that the match counts before the first job is asked for. */
        int r = sd_bus_match_signal_async(bus, &u->removed, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "JobRemoved", on_removed, on_matched, u);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(u);
        return 0;
}

Units *units_free(Units *u) {
        if (!u)
                return NULL;
        while (u->jobs)
                (void) unit_job_forget(u->jobs);
        sd_bus_slot_unref(u->removed);
        sd_bus_unref(u->bus);
        sd_event_unref(u->event);
        return mfree(u);
}
