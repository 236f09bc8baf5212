/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "launch/limits.h"
#include "launch/shim-ahead.h"
#include "launch/shim-start.h"

struct ShimAhead {
        Launcher *launcher;
        pid_t pid;
        int fd;
        sd_event_source *end;
        /* Of a scope that was asked for: */
        bool asked, made;
        sd_event_source *io, *first_io;
        Scope *scope;
        pid_t first;
        int first_fd;
};

/* Its process is somebody else's, or gone. */
static void forget(ShimAhead *a) {
        a->launcher->ahead = NULL;
        sd_event_source_disable_unref(a->end);
        sd_event_source_disable_unref(a->io);
        sd_event_source_disable_unref(a->first_io);
        if (a->scope && a->made)
                scope_stop(a->scope);
        scope_free(a->scope);
        safe_close(a->first_fd);
        safe_close(a->fd);
        free(a);
}

/* Waited for, so that nothing of it is left when the service manager looks. Its first process goes with it. */
static void drop(ShimAhead *a) {
        pid_t pid = a->pid;

        forget(a);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
}

/* Not before a session was started without it is there another: one that cannot be executed is not tried all the time. */
static int on_ended(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata) {
        log_warning("The shim that was started ahead ended (%s %d); the next session starts its own", info->si_code == CLD_EXITED ? "status" : "signal",
                    info->si_status);
        forget(userdata);
        return 0;
}

/* ---- its scope ---- */

static void scope_fails(ShimAhead *a, const char *why) {
        log_warning("No scope can be made ahead: %s; the session makes its own", why ?: "out of memory");
        a->launcher->ahead_plan = scope_plan_free(a->launcher->ahead_plan);
        drop(a);
}

static void on_made(int error, const char *text, void *userdata) {
        ShimAhead *a = userdata;

        if (error < 0) {
                a->scope = scope_free(a->scope);
                scope_fails(a, text);
        } else
                a->made = true;
}

/* Killed, or its scope was stopped. */
static int on_first_ended(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        scope_fails(userdata, "what waited in it ended");
        return 0;
}

static int on_waiting(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        _cleanup_(scope_plan_freep) ScopePlan *plan = NULL;
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;
        ShimAhead *a = userdata;
        Launcher *l = a->launcher;
        uint64_t pid;

        int r = message_receive(a->fd, &m, NULL);
        if (r == -EAGAIN)
                return 0;
        a->io = sd_event_source_disable_unref(a->io);
        if (r == -ECONNRESET)
                return 0; /* its end comes next */
        if (r >= 0)
                r = streq(message_type(m), "waiting") ? json_get_u64(message_object(m), "pid", INT32_MAX, &pid) : -EBADMSG;
        if (r >= 0) {
                a->first = (pid_t) pid;
                a->first_fd = message_take_fd(m, "pidfd");
                r = a->first_fd < 0 ? a->first_fd : scope_plan_copy(l->ahead_plan, &plan);
        }
        if (r >= 0)
                r = sd_event_add_io(l->event, &a->first_io, a->first_fd, EPOLLIN, on_first_ended, a);
        if (r >= 0)
                r = scope_make(l->manager, plan, a->first, a->first_fd, on_made, a, &a->scope, &problem);
        if (r < 0)
                scope_fails(a, problem ?: strerror(-r));
        else
                TAKE_PTR(plan);
        return 0;
}

static void ask(ShimAhead *a) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        message_open(&w, "prepare");
        message_add_fd(&w, "bailey");
        int r = message_send(a->fd, &w, &a->launcher->bailey, 1);
        if (r >= 0)
                r = sd_event_add_io(a->launcher->event, &a->io, a->fd, EPOLLIN, on_waiting, a);
        a->asked = true;
        if (r < 0)
                scope_fails(a, strerror(-r));
}

void shim_ahead_prepare(Launcher *l, ScopePlan *plan) {
        scope_plan_free(l->ahead_plan);
        l->ahead_plan = l->keeps_ahead ? plan : scope_plan_free(plan);
        if (l->ahead && l->ahead->asked) { /* for one that will not come */
                drop(l->ahead);
                shim_ahead_later(l);
        } else if (l->ahead && l->ahead_plan)
                ask(l->ahead);
}

/* ---- itself ---- */

static int start(Launcher *l) {
        ShimAhead *a = calloc(1, sizeof(ShimAhead));

        if (!a)
                return -ENOMEM;
        *a = (ShimAhead){.launcher = l, .fd = -EBADF, .first_fd = -EBADF};
        int r = shim_start_ahead(l, &a->pid, &a->fd);
        if (r < 0) {
                free(a);
                return r;
        }
        l->ahead = a;
        r = sd_event_add_child(l->event, &a->end, a->pid, WEXITED, on_ended, a);
        if (r < 0)
                drop(a);
        else if (l->ahead_plan)
                ask(a);
        return r;
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Launcher *l = userdata;

        l->ahead_timer = sd_event_source_disable_unref(l->ahead_timer);
        if (l->ahead || l->fd < 0)
                return 0;
        int r = start(l);
        if (r < 0)
                log_warning_errno(r, "No shim can be started ahead: %m; the next session starts its own");
        return 0;
}

void shim_ahead_later(Launcher *l) {
        l->ahead_timer = sd_event_source_disable_unref(l->ahead_timer);
        if (l->keeps_ahead && !l->ahead && sd_event_add_time_relative(l->event, &l->ahead_timer, CLOCK_MONOTONIC, AHEAD_USEC, 0, on_timer, l) < 0)
                log_warning("No shim can be started ahead: no timer");
}

static bool lives(const ShimAhead *a) {
        return a->scope && poll(&(struct pollfd){.fd = a->first_fd, .events = POLLIN}, 1, 0) == 0;
}

int shim_ahead_take(Launcher *l, const ScopePlan *plan, ShimTaken *ret) {
        ShimAhead *a = l->ahead;

        bool mine = plan && l->ahead_plan && streq(plan->unit, l->ahead_plan->unit), same = mine && scope_plan_equal(plan, l->ahead_plan);
        if (mine) /* whatever becomes of it, it has come */
                l->ahead_plan = scope_plan_free(l->ahead_plan);
        if (!a || (a->asked && !mine))
                return -ENOENT;
        if (a->asked && (!same || !lives(a))) {
                drop(a);
                return -ENOENT;
        }
        *ret = (ShimTaken){.pid = a->pid, .fd = TAKE_FD(a->fd), .scope = TAKE_PTR(a->scope), .first = a->first, .first_fd = TAKE_FD(a->first_fd),
                           .made = a->made};
        forget(a);
        return 0;
}

void shim_ahead_end(Launcher *l) {
        l->ahead_timer = sd_event_source_disable_unref(l->ahead_timer);
        l->ahead_plan = scope_plan_free(l->ahead_plan);
        if (l->ahead)
                drop(l->ahead);
}
