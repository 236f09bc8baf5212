/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "shared/message.h"
#include "shim/ahead.h"
#include "shim/child.h"

#define NAME "errand-shim"
#define NAME_WAITING "shim-ahead" /* who counts shims by their names counts sessions */

void ahead_done(Ahead *a) {
        strv_free(a->argv);
}

bool ahead_waits(int argc, char *argv[], int *ret_fd) {
        return argc >= 3 && streq(argv[1], "--wait-fd") && parse_fd(argv[2], ret_fd) >= 0 && *ret_fd > STDERR_FILENO && fd_cloexec(*ret_fd, true) >= 0;
}

/* The arguments that a started one would have had. */
static int read_start(Message *m, Ahead *a) {
        _cleanup_strv_free_ char **argv = NULL, **names = NULL, **arguments = NULL;
        JsonObject *o = message_object(m);
        uint64_t made = 0;

        if (!streq(message_type(m), "start") || json_get_strv(o, "arguments", &arguments) < 0 || json_get_strv(o, "fds", &names) < 0)
                return -EBADMSG;
        int r = json_get_u64(o, "made", INT32_MAX, &made);
        if (r < 0 && r != -ENOENT)
                return r;
        r = strv_extend(&argv, NAME);
        for (char **name = names; name && *name && r >= 0; name++) {
                _cleanup_close_ int fd = message_take_fd(m, *name);
                r = fd < 0 ? fd : strv_extend(&argv, "--fd");
                if (r >= 0)
                        r = strv_extend_format(&argv, "%s=%d", *name, fd);
                if (r >= 0)
                        TAKE_FD(fd);
        }
        if (r >= 0)
                r = strv_extend_list(&argv, arguments);
        if (r < 0)
                return r;
        a->argv = TAKE_PTR(argv);
        a->made = (pid_t) made;
        return 0;
}

/* For whoever looks for the shim of a session. The rest of the room becomes NULs. */
static void show_session(int argc, char *argv[], char *const *arguments) {
        static const char begin[] = NAME "\0--session";
        size_t room = (size_t) (argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);

        (void) prctl(PR_SET_NAME, NAME);
        for (char *const *a = arguments; *a && !streq(*a, "--"); a++) {
                if (!streq(*a, "--session") || !a[1] || sizeof(begin) + strlen(a[1]) > room)
                        continue;
                memset(argv[0], 0, room);
                memcpy(argv[0], begin, sizeof(begin));
                memcpy(argv[0] + sizeof(begin), a[1], strlen(a[1]));
                return;
        }
}

static int prepare(int fd, Message *m, Ahead *a) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_close_ int bailey = message_take_fd(m, "bailey");

        if (a->first > 0 || bailey < 0)
                return -EBADMSG;
        int r = child_fork_ahead(bailey, &a->first, &a->gate);
        if (r < 0)
                return r;
        _cleanup_close_ int pidfd = pidfd_open(a->first, 0);
        if (pidfd < 0)
                return -errno;
        message_open(&w, "waiting");
        json_add_u64(&w, "pid", (uint64_t) a->first);
        message_add_fd(&w, "pidfd");
        return message_send(fd, &w, &pidfd, 1);
}

/* Until it is told what to start. What was forked goes with this process. */
static int receive_start(int fd, Ahead *a) {
        for (;;) {
                _cleanup_(message_freep) Message *m = NULL;
                int r = message_receive(fd, &m, NULL);
                if (r < 0)
                        return r;
                if (!streq(message_type(m), "prepare"))
                        return read_start(m, a);
                r = prepare(fd, m, a);
                if (r < 0)
                        return r;
        }
}

int ahead_wait(int fd, int argc, char *argv[], Ahead *ret) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_close_ int own = fd;
        _cleanup_(ahead_done) Ahead a = {.gate = -EBADF};

        (void) prctl(PR_SET_NAME, NAME_WAITING);
        int r = receive_start(own, &a);
        if (r == -ECONNRESET)
                return r;
        if (r == -ECHILD) {
                log_error("bailey cannot be executed ahead of its session");
                return r;
        }
        if (r < 0)
                return log_error_errno(r, "what it is to start is not understood: %m");
        message_open(&w, "taken");
        r = message_send(own, &w, NULL, 0);
        if (r < 0) /* another one was started meanwhile, or nobody wants it any more */
                return log_error_errno(r, "the launcher that started it is gone: %m");
        show_session(argc, argv, a.argv);
        a.argc = (int) strv_length(a.argv);
        *ret = a;
        a.argv = NULL;
        return 0;
}
