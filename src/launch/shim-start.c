/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "launch/programs.h"
#include "launch/shim-start.h"

typedef struct Start {
        char **argv;
        int keep[_LAUNCH_FD_MAX + 3];
        size_t n_keep;
} Start;

static int add_option(Start *s, const char *option, const char *value) {
        if (!value)
                return 0;
        int r = strv_extend(&s->argv, option);
        return r < 0 ? r : strv_extend(&s->argv, value);
}

static int add_fd(Start *s, const char *name, int fd) {
        if (fd < 0)
                return 0;
        s->keep[s->n_keep++] = fd;
        int r = strv_extend(&s->argv, "--fd");
        return r < 0 ? r : strv_extend_format(&s->argv, "%s=%d", name, fd);
}

static int add_conversation(Start *s, const LaunchPlan *p) {
        const struct {
                const char *option;
                uint64_t ms;
        } times[] = {{"--startup-ms", p->startup_ms}, {"--question-ms", p->question_ms}, {"--abort-ms", p->abort_ms}};

        int r = add_option(s, "--conversation", "acp");
        for (size_t i = 0; i < ELEMENTSOF(times) && r >= 0; i++)
                r = strv_extend_format(&s->argv, "%s=%llu", times[i].option, (unsigned long long) times[i].ms);
        return r;
}

/* The names of options and descriptors are the shim's. */
static int build_arguments(const Launcher *l, const LaunchPlan *p, int channel, Start *s) {
        int r = strv_extend(&s->argv, "errand-shim");

        if (r >= 0)
                r = add_option(s, "--session", p->session);
        if (r >= 0)
                r = add_option(s, "--socket", p->socket);
        if (r >= 0)
                r = add_option(s, "--home", p->home);
        if (r >= 0)
                r = strv_extend_format(&s->argv, "--errandd-uid=%u", l->errandd_uid);
        if (r >= 0)
                r = strv_extend_format(&s->argv, "--grace-ms=%u", p->grace_ms);
        if (r >= 0 && p->file_max > 0)
                r = strv_extend_format(&s->argv, "--file-max=%llu", (unsigned long long) p->file_max);
        if (r >= 0 && p->conversation)
                r = add_conversation(s, p);
        if (r >= 0)
                r = add_option(s, "--broker-socket", p->broker_socket);
        if (r >= 0)
                r = add_option(s, "--listen", p->listen);
        if (r >= 0 && p->proxy_net)
                r = strv_extend(&s->argv, "--proxy-net");
        if (r >= 0 && p->interactive)
                r = strv_extend(&s->argv, "--interactive");
        if (r >= 0 && p->rows > 0 && p->columns > 0) {
                r = strv_extend_format(&s->argv, "--rows=%u", p->rows);
                if (r >= 0)
                        r = strv_extend_format(&s->argv, "--columns=%u", p->columns);
        }
        if (r >= 0 && p->strict)
                r = strv_extend(&s->argv, "--strict");
        for (char **g = p->accept_gaps; g && *g && r >= 0; g++)
                r = add_option(s, "--accept-gap", *g);
        if (r >= 0 && p->scope)
                r = add_option(s, "--scope", p->scope->unit);
        if (r >= 0 && log_is_to_journal())
                r = strv_extend(&s->argv, "--journal");
        if (r >= 0)
                r = add_fd(s, "launcher", channel);
        if (r >= 0)
                r = add_fd(s, "bailey", l->bailey);
        for (LaunchFd i = 0; i < _LAUNCH_FD_MAX && r >= 0; i++)
                r = add_fd(s, launch_fd_to_string(i), p->fds[i]);
        if (r >= 0)
                r = strv_extend(&s->argv, "--");
        if (r >= 0)
                r = strv_extend_list(&s->argv, p->command);
        s->keep[s->n_keep++] = l->shim;
        return r;
}

int shim_start(const Launcher *l, const LaunchPlan *plan, pid_t *ret_pid, int *ret_channel) {
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY), ours = -EBADF, theirs = -EBADF;
        int pair[2];
        Start start = {};

        if (null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        int r = fd_nonblock(ours, true);
        if (r >= 0)
                r = build_arguments(l, plan, theirs, &start);
        _cleanup_strv_free_ char **argv = start.argv;
        if (r < 0)
                return r;

        pid_t pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                program_execute(l->shim, argv, (const int[]){null, null, STDERR_FILENO}, start.keep, start.n_keep);
        *ret_pid = pid;
        *ret_channel = TAKE_FD(ours);
        return 0;
}
