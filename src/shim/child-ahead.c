/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "shared/message.h"
#include "shim/child.h"
#include "shim/child-private.h"

/* {"v":1,"type":"run","arguments","environment","core","fileMax","fds"}: descriptors that are kept are named by their numbers in the shim, which
 * are those in the arguments. A limit that is not named is none. */

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
        json_add_string(&w, NULL, "bailey");
        fds[n++] = s->bailey;
        for (size_t i = 1; i < s->n_keep; i++) {
                char number[16];
                (void) snprintf(number, sizeof(number), "%d", s->keep[i]);
                json_add_string(&w, NULL, number);
                fds[n++] = s->keep[i];
        }
        json_close_array(&w);
        return message_send(gate, &w, fds, n);
}

/* Its descriptor of that name, at a number from `least` on. */
static int take_above(Message *m, const char *name, int least) {
        _cleanup_close_ int fd = message_take_fd(m, name);
        if (fd < 0)
                return fd;
        int moved = fcntl(fd, F_DUPFD_CLOEXEC, least);
        return moved < 0 ? -errno : moved;
}

/* First all go out of the way, then each to its number. */
static int place_fds(Message *m, char *const *names, Start *s) {
        static const char *const named[] = {"stdin", "stdout", "stderr", "project", "bailey"};
        int *const places[] = {&s->standard[0], &s->standard[1], &s->standard[2], &s->project, &s->bailey};
        int numbers[ELEMENTSOF(s->keep)], moved[ELEMENTSOF(s->keep)], least = s->gate + 1;
        size_t n = 0;

        for (char *const *name = names; name && *name; name++) {
                int number;
                if (parse_fd(*name, &number) < 0)
                        continue; /* one of those with a name, or it will be missing */
                if (n + 1 == ELEMENTSOF(numbers) || number <= STDERR_FILENO)
                        return -EBADMSG;
                numbers[n++] = number;
                least = MAX(least, number + 1);
        }
        s->gate = fcntl(s->gate, F_DUPFD_CLOEXEC, least);
        if (s->gate < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(named); i++) {
                *places[i] = take_above(m, named[i], least);
                if (*places[i] < 0)
                        return *places[i];
        }
        s->keep[s->n_keep++] = s->bailey;
        for (size_t i = 0; i < n; i++) {
                char text[16];
                (void) snprintf(text, sizeof(text), "%d", numbers[i]);
                moved[i] = take_above(m, text, least);
                if (moved[i] < 0)
                        return moved[i];
        }
        for (size_t i = 0; i < n; i++) {
                if (dup3(moved[i], numbers[i], O_CLOEXEC) < 0)
                        return -errno;
                s->keep[s->n_keep++] = numbers[i];
        }
        return 0;
}

static int read_run(Message *m, Start *s) {
        JsonObject *o = message_object(m);
        char **names = NULL;
        uint64_t core = RLIM_INFINITY, file_max = 0;

        if (!streq(message_type(m), "run") || getrlimit(RLIMIT_CORE, &s->core) < 0)
                return -EBADMSG;
        int r = json_get_strv(o, "arguments", &s->argv);
        if (r >= 0)
                r = json_get_strv(o, "environment", &s->environment);
        if (r >= 0)
                r = json_get_strv(o, "fds", &names);
        if (r < 0)
                return r;
        r = json_get_u64(o, "core", INT64_MAX, &core);
        if (r >= 0 || r == -ENOENT)
                r = json_get_u64(o, "fileMax", INT64_MAX, &file_max);
        if (r >= 0 || r == -ENOENT)
                r = child_reserve_cgroup(s, &s->environment);
        if (r < 0)
                return r;
        s->core.rlim_cur = MIN((rlim_t) core, s->core.rlim_max);
        s->file_max = (rlim_t) file_max;
        return place_fds(m, names, s);
}

/* In the child, which goes by exec or by exit. */
_noreturn_ static void wait_for_run(int gate, pid_t parent) {
        Start s = {.parent = parent, .gate = gate, .gate_end = -EBADF};
        Message *m;

        /* As child_execute() has it, but from now on. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || fd_close_all_except(3, &gate, 1) < 0)
                _exit(EXIT_FAILURE);
        (void) prctl(PR_SET_NAME, "bailey-ahead");
        if (send(gate, "", 1, MSG_NOSIGNAL) != 1)
                _exit(EXIT_FAILURE);
        if (message_receive(gate, &m, NULL) < 0 || read_run(m, &s) < 0)
                _exit(EXIT_FAILURE);
        child_execute(&s);
}

/* It has nothing any more that is the shim's, and waits: before that it is told to nobody. */
static int await_child(int gate) {
        ssize_t n;
        char c;

        while ((n = recv(gate, &c, 1, 0)) < 0 && errno == EINTR)
                ;
        return n < 0 ? -errno : n == 0 ? -ECHILD : 0;
}

int child_fork_ahead(pid_t *ret_pid, int *ret_gate) {
        pid_t parent = getpid();
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid_t pid = fork();
        if (pid == 0)
                wait_for_run(pair[1], parent);
        int r = pid < 0 ? -errno : 0;
        (void) close(pair[1]);
        if (r >= 0)
                r = await_child(pair[0]);
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
