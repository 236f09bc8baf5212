/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The order of a session's beginning, where it gets a scope of its own: a process is forked, which is to become bailey, and waits; the launcher is
 * told which it is, has the scope made around it, and says so; the shim looks whether the process is in it, and lets it go. One that was forked
 * before there was a session is bailey already (bailey/ahead.h), and where its scope was made before, too, the launcher has said so with the plan.
 * Whatever else happens, the process ends before it has begun a run. */

#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "shared/message.h"
#include "shim/gate.h"

int gate_tell(Shim *s, const char *type, const char *text) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        int *fd = &s->options->fds[SHIM_FD_LAUNCHER];

        if (*fd < 0)
                return 0;
        message_open(&w, type);
        if (text)
                json_add_string(&w, "text", text);
        int r = message_send(*fd, &w, NULL, 0);
        s->launcher_io = sd_event_source_disable_unref(s->launcher_io);
        *fd = safe_close(*fd);
        return r;
}

static void refuse(Shim *s, const char *text) {
        log_error("The session %s does not run: %s", s->options->session, text);
        s->refused = strdup(text);
        s->child.gate = safe_close(s->child.gate);
        (void) kill(s->child.pid, SIGKILL);
}

void gate_tell_ready(Shim *s) {
        if (gate_tell(s, "ready", NULL) < 0)
                refuse(s, "errand-launch went before the session was known to run");
}

void gate_let_go(Shim *s) {
        _cleanup_free_ char *directory = NULL;

        int r = group_new(s->event, s->child.pid, s->options->scope, &s->group, &directory);
        if (r < 0) {
                refuse(s, r == -EXDEV ? "its first process is not in the scope that was made for it" : "its scope is not found");
                return;
        }
        r = child_release(&s->child, directory);
        if (r < 0)
                refuse(s, "its first process ended before the scope was made");
        else
                gate_tell_ready(s);
}

static int on_launcher(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        _cleanup_(message_freep) Message *m = NULL;
        const char *text;
        Shim *s = userdata;

        int r = message_receive(s->options->fds[SHIM_FD_LAUNCHER], &m, NULL);
        if (r == -EAGAIN)
                return 0;
        s->launcher_io = sd_event_source_disable_unref(s->launcher_io);
        if (s->child_ended || s->stopping)
                return 0;
        if (r >= 0 && streq(message_type(m), "release"))
                gate_let_go(s);
        else if (r >= 0 && streq(message_type(m), "abort") && json_get_string(message_object(m), "text", &text) >= 0)
                refuse(s, text);
        else
                refuse(s, "errand-launch went before the session's scope was made");
        return 0;
}

int gate_ask_for_scope(Shim *s) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        int fd = s->options->fds[SHIM_FD_LAUNCHER];

        _cleanup_close_ int pidfd = pidfd_open(s->child.pid, 0);
        int r = pidfd < 0 ? -errno : fd_nonblock(fd, true);
        if (r >= 0)
                r = sd_event_add_io(s->event, &s->launcher_io, fd, EPOLLIN, on_launcher, s);
        if (r < 0)
                return r;
        message_open(&w, "waiting");
        json_add_u64(&w, "pid", (uint64_t) s->child.pid);
        message_add_fd(&w, "pidfd");
        return message_send(fd, &w, &pidfd, 1);
}
