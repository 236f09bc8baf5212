/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "launch/limits.h"
#include "launch/scope.h"
#include "shared/cgroup.h"

struct Scope {
        UserManager *manager;
        ScopePlan *plan;
        pid_t pid;
        int pidfd;
        ScopeMade made; /* NULL once it was called */
        void *userdata;

        sd_bus *bus;
        sd_bus_slot *call, *job_removed, *unit_removed;
        sd_event_source *timeout;
        char *job;                     /* ours, once it is known */
        char *removed_job, *result;    /* the last that ended before that */
        unsigned tries;
        bool waits; /* for the end of an older one of that name */
        bool asked; /* there may be one to stop */
        bool missing[_SCOPE_LIMIT_MAX];
};

static void stop_waiting(Scope *s) {
        s->call = sd_bus_slot_unref(s->call);
        s->job_removed = sd_bus_slot_unref(s->job_removed);
        s->unit_removed = sd_bus_slot_unref(s->unit_removed);
        s->timeout = sd_event_source_disable_unref(s->timeout);
        s->bus = sd_bus_unref(s->bus);
}

Scope *scope_free(Scope *s) {
        if (!s)
                return NULL;
        if (s->made && s->asked)
                user_manager_stop_unit(s->manager, s->plan->unit);
        stop_waiting(s);
        scope_plan_free(s->plan);
        free(s->job);
        free(s->removed_job);
        free(s->result);
        return mfree(s);
}

void scope_hand_over(Scope *s, ScopeMade made, void *userdata) {
        if (!s->made)
                return;
        s->made = made;
        s->userdata = userdata;
}

const char *scope_unit(const Scope *s) {
        return s->plan->unit;
}

bool scope_limit_missing(const Scope *s, ScopeLimit limit) {
        return s->missing[limit];
}

void scope_stop(Scope *s) {
        user_manager_stop_unit(s->manager, s->plan->unit);
}

static void finish(Scope *s, int error, const char *text) {
        ScopeMade made = s->made;

        /* Made in part, or perhaps still to come. */
        if (error < 0 && s->asked)
                scope_stop(s);
        stop_waiting(s);
        s->made = NULL;
        made(error, text, s->userdata);
}

_printf_(3, 4) static int fail(Scope *s, int error, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *clean = text ? string_escape_control(text) : NULL;

        finish(s, error, clean ?: "the scope cannot be made");
        return 0;
}

/* Read from the kernel: a manager takes a limit that it has no controller for. */
static int check_limits(Scope *s, const char *path) {
        _cleanup_close_ int group = cgroup_open(path);

        for (ScopeLimit i = 0; i < _SCOPE_LIMIT_MAX; i++) {
                const ScopeLimitName *n = scope_limit_name(i);
                if (s->plan->limits[i] == SCOPE_NOT_LIMITED || cgroup_limit_holds(group, n->file, s->plan->limits[i]))
                        continue;
                s->missing[i] = true;
                if (s->plan->required[i])
                        return fail(s, -EOPNOTSUPP, "%s of %s is not held by the kernel: the account's user manager has no controller for it",
                                    n->property, s->plan->unit);
        }
        finish(s, 0, NULL);
        return 0;
}

/* What the manager says is looked at: a scope that its process is not in limits nothing. */
static int check(Scope *s) {
        _cleanup_free_ char *path = NULL;

        int r = cgroup_of_process(s->pid, &path);
        if (r >= 0 && poll(&(struct pollfd){.fd = s->pidfd, .events = POLLIN}, 1, 0) != 0)
                r = -ESRCH; /* what was read may be a successor's of that number */
        if (r < 0)
                return fail(s, r, "the process that waits for %s cannot be found: %s", s->plan->unit, strerror(-r));
        if (!cgroup_is_unit(path, s->plan->unit))
                return fail(s, -EXDEV, "the user manager says that %s is made, but the process is in %s", s->plan->unit, path);
        return check_limits(s, path);
}

static int job_ended(Scope *s, const char *result) {
        if (!streq(result, "done"))
                return fail(s, -ECANCELED, "the user manager did not start %s: its job ended with \"%s\"", s->plan->unit, result);
        return check(s);
}

static int on_job_removed(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const char *job, *unit, *result;
        Scope *s = userdata;

        if (sd_bus_message_read(m, "uoss", NULL, &job, &unit, &result) < 0 || !streq(unit, s->plan->unit))
                return 0;
        if (s->job)
                return streq(job, s->job) ? job_ended(s, result) : 0;
        free(s->removed_job);
        free(s->result);
        s->removed_job = strdup(job);
        s->result = strdup(result);
        return 0;
}

static int request(Scope *s);

static int on_unit_removed(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const char *unit;
        Scope *s = userdata;

        if (s->waits && sd_bus_message_read(m, "so", &unit, NULL) >= 0 && streq(unit, s->plan->unit))
                return request(s);
        return 0;
}

static int on_old_stopped(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Scope *s = userdata;

        s->call = sd_bus_slot_unref(s->call);
        /* Gone meanwhile; else its removal is told. */
        return s->waits && sd_bus_message_is_method_error(m, NULL) ? request(s) : 0;
}

/* One of an earlier run, that is going or was left behind by a shim that was killed: no shim of the session lives. */
static int end_old(Scope *s) {
        s->waits = true;
        int r = sd_bus_call_method_async(s->bus, &s->call, MANAGER_DESTINATION, MANAGER_PATH, MANAGER_INTERFACE, "StopUnit", on_old_stopped, s,
                                         "ss", s->plan->unit, "replace");
        return r < 0 ? fail(s, r, "%s is there already and cannot be stopped: %s", s->plan->unit, strerror(-r)) : 0;
}

static int on_started(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const char *job;
        Scope *s = userdata;

        s->call = sd_bus_slot_unref(s->call);
        if (sd_bus_message_is_method_error(m, "org.freedesktop.systemd1.UnitExists") && s->tries < SCOPE_TRIES_MAX)
                return end_old(s);
        const sd_bus_error *e = sd_bus_message_get_error(m);
        if (e)
                return fail(s, -sd_bus_error_get_errno(e), "the user manager refuses %s: %s", s->plan->unit, e->message ?: e->name);
        s->asked = true;
        if (sd_bus_message_read(m, "o", &job) < 0)
                return fail(s, -EBADMSG, "the user manager's answer about %s is not understood", s->plan->unit);
        s->job = strdup(job);
        if (!s->job)
                return fail(s, -ENOMEM, "the launcher is out of memory");
        return s->removed_job && s->result && streq(s->removed_job, s->job) ? job_ended(s, s->result) : 0;
}

static int on_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Scope *s = userdata;

        s->asked = true;
        return fail(s, -ETIMEDOUT, "the user manager did not make %s within %llu seconds", s->plan->unit,
                    (unsigned long long) (SCOPE_USEC / USEC_PER_SEC));
}

/* ---- the request ---- */

static int append_process(sd_bus_message *m, const Scope *s) {
        return user_manager_takes_pidfds(s->manager) ? sd_bus_message_append(m, "(sv)", "PIDFDs", "ah", 1, s->pidfd)
                                                     : sd_bus_message_append(m, "(sv)", "PIDs", "au", 1, (uint32_t) s->pid);
}

static int append_properties(sd_bus_message *m, const Scope *s) {
        const ScopePlan *p = s->plan;

        int r = sd_bus_message_append(m, "(sv)(sv)(sv)(sv)", "Description", "s", p->description, "Delegate", "b", p->delegate,
                                      /* One that is killed for want of memory is the session's to bear, not the end of it. */
                                      "OOMPolicy", "s", "continue", "CollectMode", "s", "inactive-or-failed");
        if (r >= 0 && p->slice)
                r = sd_bus_message_append(m, "(sv)", "Slice", "s", p->slice);
        for (ScopeLimit i = 0; i < _SCOPE_LIMIT_MAX && r >= 0; i++)
                if (p->limits[i] != SCOPE_NOT_LIMITED)
                        r = sd_bus_message_append(m, "(sv)", scope_limit_name(i)->property, "t", p->limits[i]);
        return r < 0 ? r : append_process(m, s);
}

static int send_request(Scope *s) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        int r = sd_bus_message_new_method_call(s->bus, &m, MANAGER_DESTINATION, MANAGER_PATH, MANAGER_INTERFACE, "StartTransientUnit");
        if (r >= 0)
                r = sd_bus_message_append(m, "ss", s->plan->unit, "fail");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(sv)");
        if (r >= 0)
                r = append_properties(m, s);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0)
                r = sd_bus_message_append(m, "a(sa(sv))", 0);
        /* The time is kept for the whole. */
        return r < 0 ? r : sd_bus_call_async(s->bus, &s->call, m, on_started, s, 2 * SCOPE_USEC);
}

/* Also again, once an older one has gone. */
static int request(Scope *s) {
        s->waits = false;
        s->tries++;
        s->call = sd_bus_slot_unref(s->call);
        int r = send_request(s);
        return r < 0 ? fail(s, r, "%s cannot be asked for: %s", s->plan->unit, strerror(-r)) : 0;
}

int scope_make(UserManager *manager, ScopePlan *plan, pid_t pid, int pidfd, ScopeMade made, void *userdata, Scope **ret, char **ret_problem) {
        _cleanup_(scope_freep) Scope *s = calloc(1, sizeof(Scope));
        sd_bus *bus;

        if (!s)
                return -ENOMEM;
        *s = (Scope){.manager = manager, .plan = plan, .pid = pid, .pidfd = pidfd, .userdata = userdata, .tries = 1};
        int r = user_manager_connect(manager, &bus, ret_problem);
        if (r >= 0) {
                s->bus = sd_bus_ref(bus);
                r = sd_bus_match_signal(bus, &s->job_removed, NULL, MANAGER_PATH, MANAGER_INTERFACE, "JobRemoved", on_job_removed, s);
        }
        if (r >= 0)
                r = sd_bus_match_signal(bus, &s->unit_removed, NULL, MANAGER_PATH, MANAGER_INTERFACE, "UnitRemoved", on_unit_removed, s);
        if (r >= 0)
                r = sd_event_add_time_relative(user_manager_event(manager), &s->timeout, CLOCK_MONOTONIC, SCOPE_USEC, 1, on_timeout, s);
        if (r >= 0)
                r = send_request(s);
        if (r < 0) {
                s->plan = NULL; /* stays the caller's */
                return r;
        }
        s->made = made;
        *ret = TAKE_PTR(s);
        return 0;
}
