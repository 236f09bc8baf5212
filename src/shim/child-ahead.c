/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "shared/message.h"
#include "shim/child.h"
#include "shim/child-private.h"

/* See bailey/ahead.h. */

int child_send(int gate, const Start *s) {
        static const char *const standard[] = {"stdin", "stdout", "stderr"};
        _cleanup_(json_writer_done) JsonWriter w = {};
        int fds[MESSAGE_FDS_MAX];
        size_t n = 0;

        if (s->n_keep + 4 > ELEMENTSOF(fds))
                return -EMSGSIZE;
        message_open(&w, "run");
        json_add_strings(&w, "arguments", s->argv);
        json_add_strings(&w, "environment", s->environment);
        if (s->core.rlim_cur != RLIM_INFINITY)
                json_add_u64(&w, "core", s->core.rlim_cur);
        if (s->file_max > 0)
                json_add_u64(&w, "fileMax", s->file_max);
        json_open_array(&w, "fds");
        for (size_t i = 0; i < ELEMENTSOF(standard); i++) {
                json_add_string(&w, NULL, standard[i]);
                fds[n++] = s->standard[i];
        }
        json_add_string(&w, NULL, "project");
        fds[n++] = s->project;
        for (size_t i = 1; i < s->n_keep; i++) {
                char number[16];
                (void) snprintf(number, sizeof(number), "%d", s->keep[i]);
                json_add_string(&w, NULL, number);
                fds[n++] = s->keep[i];
        }
        json_close_array(&w);
        return message_send(gate, &w, fds, n);
}

/* In the child. What of bailey's start needs nothing of the session's is done here, the rest by itself. */
_noreturn_ static void execute_ahead(int bailey, int gate, pid_t parent) {
        char number[16], *const argv[] = {(char *) "bailey", (char *) "--wait-fd", number, NULL}, *const environment[] = {NULL};

        if (!child_follow(parent) || fd_close_all_except(3, (const int[]) {bailey, gate}, 2) < 0)
                _exit(EXIT_FAILURE);
        (void) snprintf(number, sizeof(number), "%d", gate);
        if (fd_cloexec(bailey, true) >= 0 && fd_cloexec(gate, false) >= 0)
                (void) syscall(SYS_execveat, bailey, "", argv, environment, AT_EMPTY_PATH);
        _exit(EXIT_FAILURE);
}

static int await_ahead(int gate) {
        char waits;
        ssize_t n;

        while ((n = recv(gate, &waits, sizeof(waits), 0)) < 0 && errno == EINTR)
                ;
        return n < 0 ? -errno : n == 0 ? -ECHILD : 0;
}

int child_fork_ahead(int bailey, pid_t *ret_pid, int *ret_gate) {
        pid_t parent = getpid();
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                execute_ahead(bailey, pair[1], parent);
        int r = pid < 0 ? -errno : 0;
        (void) close(pair[1]);
        if (r >= 0)
                r = await_ahead(pair[0]);
        if (r < 0) {
                (void) close(pair[0]);
                return r;
        }
        *ret_pid = pid;
        *ret_gate = pair[0];
        return 0;
}

void child_drop_ahead(ShimOptions *o) {
        if (o->ahead_pid <= 0)
                return;
        /* Not waited for: its scope may be about to be made around what has its number. */
        (void) kill(o->ahead_pid, SIGKILL);
        o->ahead_pid = 0;
        o->ahead_gate = safe_close(o->ahead_gate);
}
