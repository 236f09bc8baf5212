/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/wait.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "launch/limits.h"
#include "launch/shim-ahead.h"
#include "launch/shim-start.h"

struct ShimAhead {
        Launcher *launcher;
        pid_t pid;
        int fd;
        sd_event_source *end;
};

/* Its process is somebody else's, or gone. */
static void forget(ShimAhead *a) {
        a->launcher->ahead = NULL;
        sd_event_source_disable_unref(a->end);
        safe_close(a->fd);
        free(a);
}

/* Not before a session was started without it is there another: one that cannot be executed is not tried all the time. */
static int on_ended(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata) {
        log_warning("The shim that was started ahead ended (%s %d); the next session starts its own", info->si_code == CLD_EXITED ? "status" : "signal",
                    info->si_status);
        forget(userdata);
        return 0;
}

static int start(Launcher *l) {
        ShimAhead *a = calloc(1, sizeof(ShimAhead));

        if (!a)
                return -ENOMEM;
        *a = (ShimAhead){.launcher = l, .fd = -EBADF};
        int r = shim_start_ahead(l, &a->pid, &a->fd);
        if (r < 0) {
                free(a);
                return r;
        }
        l->ahead = a;
        r = sd_event_add_child(l->event, &a->end, a->pid, WEXITED, on_ended, a);
        if (r < 0)
                shim_ahead_end(l);
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

int shim_ahead_take(Launcher *l, pid_t *ret_pid, int *ret_fd) {
        ShimAhead *a = l->ahead;

        if (!a)
                return -ENOENT;
        *ret_pid = a->pid;
        *ret_fd = TAKE_FD(a->fd);
        forget(a);
        return 0;
}

/* Waited for, so that nothing of it is left when the service manager looks. */
void shim_ahead_end(Launcher *l) {
        l->ahead_timer = sd_event_source_disable_unref(l->ahead_timer);
        if (!l->ahead)
                return;
        pid_t pid = l->ahead->pid;
        forget(l->ahead);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
}
