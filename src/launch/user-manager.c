/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "launch/limits.h"
#include "launch/peer.h"
#include "launch/scope-plan.h"
#include "launch/user-manager.h"

#define PIDFDS_VERSION 255U /* "PIDFDs" of a scope, systemd 255 */

struct UserManager {
        sd_event *event;
        UserManagerStopping stopping;
        void *userdata;

        sd_bus *bus;
        sd_event_source *again; /* after it went */
        sd_bus_slot *disconnected, *job_new, *version;
        bool takes_pidfds;
};

/* A job whose kind is being asked for. */
typedef struct Job {
        UserManager *manager;
        char unit[64];
} Job;

sd_event *user_manager_event(UserManager *m) {
        return m->event;
}

bool user_manager_takes_pidfds(const UserManager *m) {
        return m->takes_pidfds;
}

int user_manager_new(sd_event *event, UserManagerStopping stopping, void *userdata, UserManager **ret) {
        UserManager *m = calloc(1, sizeof(UserManager));

        if (!m)
                return -ENOMEM;
        *m = (UserManager){.event = sd_event_ref(event), .stopping = stopping, .userdata = userdata};
        *ret = m;
        return 0;
}

/* Forgets the connection: what it did not answer in time it will not answer. */
static void drop(UserManager *m) {
        m->disconnected = sd_bus_slot_unref(m->disconnected);
        m->job_new = sd_bus_slot_unref(m->job_new);
        m->version = sd_bus_slot_unref(m->version);
        m->bus = sd_bus_close_unref(m->bus);
        m->takes_pidfds = false;
}

UserManager *user_manager_free(UserManager *m) {
        if (!m)
                return NULL;
        drop(m);
        sd_event_source_disable_unref(m->again);
        sd_event_unref(m->event);
        return mfree(m);
}

/* ---- what others do to units ---- */

static void job_free(void *userdata) {
        free(userdata);
}

static int ask(UserManager *m, const char *unit, const char *path, const char *interface, const char *property, sd_bus_message_handler_t answer) {
        sd_bus_slot *slot = NULL;

        Job *job = calloc(1, sizeof(Job));
        if (!job)
                return -ENOMEM;
        job->manager = m;
        (void) snprintf(job->unit, sizeof(job->unit), "%s", unit);
        int r = sd_bus_call_method_async(m->bus, &slot, MANAGER_DESTINATION, path, "org.freedesktop.DBus.Properties", "Get", answer, job, "ss",
                                         interface, property);
        if (r >= 0) /* both go with the answer, or with the connection */
                r = sd_bus_slot_set_destroy_callback(slot, job_free);
        if (r >= 0)
                r = sd_bus_slot_set_floating(slot, true);
        sd_bus_slot_unref(slot);
        if (r < 0)
                free(job);
        return r;
}

static int on_active_state(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const Job *job = userdata;
        const char *state;

        if (sd_bus_message_is_method_error(m, NULL) || sd_bus_message_read(m, "v", "s", &state) < 0 || !streq(state, "active"))
                job->manager->stopping(job->unit, job->manager->userdata);
        return 0;
}

static int on_job_type(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        _cleanup_free_ char *path = NULL;
        const Job *job = userdata;
        const char *type;

        if (!sd_bus_message_is_method_error(m, NULL)) {
                if (sd_bus_message_read(m, "v", "s", &type) >= 0 && (streq(type, "stop") || streq(type, "restart")))
                        job->manager->stopping(job->unit, job->manager->userdata);
                return 0;
        }
        /* It is over already: a stop that had little to wait for, or a start of what ran. */
        int r = sd_bus_path_encode(MANAGER_PATH "/unit", job->unit, &path);
        if (r >= 0)
                r = ask(job->manager, job->unit, path, "org.freedesktop.systemd1.Unit", "ActiveState", on_active_state);
        if (r < 0)
                log_warning_errno(r, "What was done to %s is not known: %m", job->unit);
        return 0;
}

static int on_job_new(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const char *path, *unit;
        size_t size;

        if (sd_bus_message_read(m, "uos", NULL, &path, &unit) < 0 || !scope_unit_session(unit, &size))
                return 0;
        int r = ask(userdata, unit, path, "org.freedesktop.systemd1.Job", "JobType", on_job_type);
        if (r < 0)
                log_warning_errno(r, "What is done to %s is not known: %m", unit);
        return 0;
}

void user_manager_stop_unit(UserManager *m, const char *unit) {
        sd_bus *bus;

        int r = user_manager_connect(m, &bus, NULL);
        if (r >= 0)
                r = sd_bus_call_method_async(bus, NULL, MANAGER_DESTINATION, MANAGER_PATH, MANAGER_INTERFACE, "StopUnit", NULL, NULL, "ss",
                                             unit, "replace");
        if (r < 0)
                log_warning_errno(r, "%s cannot be stopped: %m", unit);
}

/* ---- the connection ---- */

/* As a manager goes on that was upgraded: its scopes are there still, and may be stopped by others. One that is not there again is asked
 * when it is needed. */
static int on_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        _cleanup_free_ char *problem = NULL;
        UserManager *m = userdata;
        sd_bus *bus;

        m->again = sd_event_source_disable_unref(m->again);
        if (user_manager_connect(m, &bus, &problem) < 0)
                log_warning("That others stop scopes will not be told: %s", problem ?: "out of memory");
        return 0;
}

static int on_disconnected(_unused_ sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error) {
        UserManager *m = userdata;

        drop(m);
        sd_event_source_disable_unref(m->again);
        m->again = NULL;
        (void) sd_event_add_time_relative(m->event, &m->again, CLOCK_MONOTONIC, MANAGER_AGAIN_USEC, 1, on_again, m);
        return 0;
}

static int on_version(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        UserManager *manager = userdata;
        const char *version;
        uint64_t number;

        if (!sd_bus_message_is_method_error(m, NULL) && sd_bus_message_read(m, "v", "s", &version) >= 0 &&
            parse_u64_n(version, strspn(version, "0123456789"), UINT32_MAX, &number) >= 0)
                manager->takes_pidfds = number >= PIDFDS_VERSION;
        return 0;
}

static int private_socket(char **ret) {
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        int n;

        if (runtime && runtime[0] == '/')
                n = asprintf(ret, "%s/systemd/private", runtime);
        else
                n = asprintf(ret, "/run/user/%u/systemd/private", getuid());
        return n < 0 ? -ENOMEM : 0;
}

/* Connected here and not by an address, which would have to be escaped: and whoever listens has to be this account. */
static int open_bus(UserManager *m, const char *path) {
        struct ucred peer;
        sd_bus *bus;

        _cleanup_close_ int fd = peer_connect(path, SOCK_STREAM, &peer);
        if (fd < 0)
                return fd;
        if (peer.uid != getuid())
                return -EPERM;
        int r = sd_bus_new(&bus);
        if (r < 0)
                return r;
        m->bus = bus;
        r = sd_bus_set_fd(bus, fd, fd);
        if (r < 0)
                return r;
        TAKE_FD(fd);
        r = sd_bus_start(bus);
        return r < 0 ? r : sd_bus_attach_event(bus, m->event, SD_EVENT_PRIORITY_NORMAL);
}

static int watch_bus(UserManager *m) {
        int r = sd_bus_match_signal(m->bus, &m->disconnected, NULL, "/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local",
                                    "Disconnected", on_disconnected, m);
        if (r >= 0)
                r = sd_bus_match_signal(m->bus, &m->job_new, NULL, MANAGER_PATH, MANAGER_INTERFACE, "JobNew", on_job_new, m);
        if (r >= 0)
                r = sd_bus_call_method_async(m->bus, NULL, MANAGER_DESTINATION, MANAGER_PATH, MANAGER_INTERFACE, "Subscribe", NULL, NULL, NULL);
        if (r >= 0)
                r = sd_bus_call_method_async(m->bus, &m->version, MANAGER_DESTINATION, MANAGER_PATH, "org.freedesktop.DBus.Properties", "Get",
                                             on_version, m, "ss", MANAGER_INTERFACE, "Version");
        return r;
}

int user_manager_connect(UserManager *m, sd_bus **ret, char **ret_problem) {
        _cleanup_free_ char *path = NULL;

        if (m->bus && sd_bus_is_open(m->bus) <= 0)
                drop(m);
        if (!m->bus) {
                int r = private_socket(&path);
                if (r >= 0)
                        r = open_bus(m, path);
                if (r >= 0)
                        r = watch_bus(m);
                if (r < 0) {
                        drop(m);
                        if (path)
                                (void) problem_set(ret_problem, "the user manager of uid %u is not reached at %s: %s; \"systemctl start "
                                                   "user@%u.service\" starts it, and an account that nobody logs in to needs \"loginctl enable-linger\"",
                                                   getuid(), path, strerror(-r), getuid());
                        return r;
                }
        }
        *ret = m->bus;
        return 0;
}
