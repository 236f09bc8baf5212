/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "launch/programs.h"
#include "launch/shim-start.h"

#define FDS_MAX (_LAUNCH_FD_MAX + 2)

/* The names of options and descriptors are the shim's. */
typedef struct Start {
        char **arguments; /* without those of descriptors */
        const char *names[FDS_MAX];
        int fds[FDS_MAX];
        size_t n_fds;
} Start;

static int add_option(Start *s, const char *option, const char *value) {
        if (!value)
                return 0;
        int r = strv_extend(&s->arguments, option);
        return r < 0 ? r : strv_extend(&s->arguments, value);
}

static void add_fd(Start *s, const char *name, int fd) {
        if (fd < 0)
                return;
        s->names[s->n_fds] = name;
        s->fds[s->n_fds++] = fd;
}

static int add_conversation(Start *s, const LaunchPlan *p) {
        const struct {
                const char *option;
                uint64_t ms;
        } times[] = {{"--startup-ms", p->startup_ms}, {"--question-ms", p->question_ms}, {"--abort-ms", p->abort_ms}};

        int r = add_option(s, "--conversation", "acp");
        for (size_t i = 0; i < ELEMENTSOF(times) && r >= 0; i++)
                r = strv_extend_format(&s->arguments, "%s=%llu", times[i].option, (unsigned long long) times[i].ms);
        return r;
}

static int build_arguments(const Launcher *l, const LaunchPlan *p, Start *s) {
        int r = add_option(s, "--session", p->session);
        if (r >= 0)
                r = add_option(s, "--socket", p->socket);
        if (r >= 0)
                r = add_option(s, "--home", p->home);
        if (r >= 0)
                r = strv_extend_format(&s->arguments, "--errandd-uid=%u", l->errandd_uid);
        if (r >= 0)
                r = strv_extend_format(&s->arguments, "--grace-ms=%u", p->grace_ms);
        if (r >= 0 && p->file_max > 0)
                r = strv_extend_format(&s->arguments, "--file-max=%llu", (unsigned long long) p->file_max);
        if (r >= 0 && p->conversation)
                r = add_conversation(s, p);
        if (r >= 0)
                r = add_option(s, "--broker-socket", p->broker_socket);
        if (r >= 0)
                r = add_option(s, "--listen", p->listen);
        if (r >= 0 && p->proxy_net)
                r = strv_extend(&s->arguments, "--proxy-net");
        if (r >= 0 && p->interactive)
                r = strv_extend(&s->arguments, "--interactive");
        if (r >= 0 && p->rows > 0 && p->columns > 0) {
                r = strv_extend_format(&s->arguments, "--rows=%u", p->rows);
                if (r >= 0)
                        r = strv_extend_format(&s->arguments, "--columns=%u", p->columns);
        }
        if (r >= 0 && p->strict)
                r = strv_extend(&s->arguments, "--strict");
        for (char **g = p->accept_gaps; g && *g && r >= 0; g++)
                r = add_option(s, "--accept-gap", *g);
        if (r >= 0 && p->scope)
                r = add_option(s, "--scope", p->scope->unit);
        if (r >= 0 && log_is_to_journal())
                r = strv_extend(&s->arguments, "--journal");
        if (r >= 0)
                r = strv_extend(&s->arguments, "--");
        return r < 0 ? r : strv_extend_list(&s->arguments, p->command);
}

static void collect_fds(const Launcher *l, const LaunchPlan *p, int channel, Start *s) {
        add_fd(s, "launcher", channel);
        add_fd(s, "bailey", l->bailey);
        for (LaunchFd i = 0; i < _LAUNCH_FD_MAX; i++)
                add_fd(s, launch_fd_to_string(i), p->fds[i]);
}

static int make_channel(int *ret_ours, int *ret_theirs) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        *ret_ours = pair[0];
        *ret_theirs = pair[1];
        return fd_nonblock(pair[0], true);
}

static int execute_shim(const Launcher *l, char *const *argv, const int *fds, size_t n_fds, pid_t *ret_pid) {
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
        int keep[FDS_MAX + 1];

        if (null < 0)
                return -errno;
        memcpy(keep, fds, n_fds * sizeof(int));
        keep[n_fds] = l->shim;
        pid_t pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                program_execute(l->shim, argv, (const int[]){null, null, STDERR_FILENO}, keep, n_fds + 1);
        *ret_pid = pid;
        return 0;
}

int shim_start(const Launcher *l, const LaunchPlan *plan, pid_t *ret_pid, int *ret_channel) {
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        _cleanup_strv_free_ char **argv = NULL;
        Start start = {};

        int r = make_channel(&ours, &theirs);
        if (r < 0)
                return r;
        collect_fds(l, plan, theirs, &start);
        r = strv_extend(&argv, "errand-shim");
        for (size_t i = 0; i < start.n_fds && r >= 0; i++) {
                r = strv_extend(&argv, "--fd");
                if (r >= 0)
                        r = strv_extend_format(&argv, "%s=%d", start.names[i], start.fds[i]);
        }
        if (r >= 0)
                r = build_arguments(l, plan, &start);
        if (r >= 0)
                r = strv_extend_list(&argv, start.arguments);
        strv_free(start.arguments);
        if (r >= 0)
                r = execute_shim(l, argv, start.fds, start.n_fds, ret_pid);
        if (r < 0)
                return r;
        *ret_channel = TAKE_FD(ours);
        return 0;
}

int shim_start_ahead(const Launcher *l, pid_t *ret_pid, int *ret_fd) {
        /* The text is for who sees it, and its room for the session that it gets: see shim/ahead.c. */
        char number[16], *const argv[] = {(char *) "errand-shim", (char *) "--wait-fd", number, (char *) "until there is a session for it", NULL};
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;

        int r = make_channel(&ours, &theirs);
        if (r < 0)
                return r;
        (void) snprintf(number, sizeof(number), "%d", theirs);
        r = execute_shim(l, argv, &theirs, 1, ret_pid);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(ours);
        return 0;
}

int shim_hand_over(const Launcher *l, const LaunchPlan *plan, int fd, pid_t made, int *ret_channel) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        Start start = {};

        int r = make_channel(&ours, &theirs);
        if (r >= 0)
                r = build_arguments(l, plan, &start);
        _cleanup_strv_free_ char **arguments = start.arguments;
        if (r < 0)
                return r;
        collect_fds(l, plan, theirs, &start);
        message_open(&w, "start");
        if (made > 0)
                json_add_u64(&w, "made", (uint64_t) made);
        json_add_strings(&w, "arguments", arguments);
        json_open_array(&w, "fds");
        for (size_t i = 0; i < start.n_fds; i++)
                json_add_string(&w, NULL, start.names[i]);
        json_close_array(&w);
        r = message_send(fd, &w, start.fds, start.n_fds);
        if (r < 0)
                return r;
        *ret_channel = TAKE_FD(ours);
        return 0;
}
