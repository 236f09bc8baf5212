/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a command on a kernel whose Landlock is older: escape-abi ABI COMMAND [ARGUMENT…]. Only the question for the version is answered
 * here; what is asked for by that answer the kernel does as an older one would. Nothing of it is in the program under test. */

#include <errno.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSION 1U /* LANDLOCK_CREATE_RULESET_VERSION */

__attribute__((noreturn)) static void die(const char *what) {
        fprintf(stderr, "escape-abi: %s: %s\n", what, strerror(errno));
        _exit(98);
}

static void send_descriptor(int through, int fd) {
        char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
        struct iovec v = {&byte, 1};
        struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        if (sendmsg(through, &m, 0) < 0)
                die("sendmsg");
}

static int receive_descriptor(int through) {
        char byte, control[CMSG_SPACE(sizeof(int))] = {};
        struct iovec v = {&byte, 1};
        struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        int fd;

        if (recvmsg(through, &m, MSG_CMSG_CLOEXEC) <= 0 || !CMSG_FIRSTHDR(&m))
                die("recvmsg");
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
        return fd;
}

__attribute__((noreturn)) static void start(int through, char *argv[]) {
        struct scmp_arg_cmp version = {2, SCMP_CMP_EQ, VERSION, 0};
        scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        errno = EINVAL;
        if (!context || seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW) < 0 ||
            seccomp_rule_add_array(context, SCMP_ACT_NOTIFY, seccomp_syscall_resolve_name("landlock_create_ruleset"), 1, &version) < 0 ||
            seccomp_load(context) < 0)
                die("the filter");
        int fd = seccomp_notify_fd(context);
        send_descriptor(through, fd);
        close(fd);
        close(through);
        execvp(argv[0], argv);
        die(argv[0]);
}

/* Until nobody is left whom it could ask. */
static void answer(int fd, int abi) {
        struct seccomp_notif *asked;
        struct seccomp_notif_resp *answer;
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (seccomp_notify_alloc(&asked, &answer) < 0)
                die("memory");
        while (poll(&p, 1, -1) >= 0 || errno == EINTR) {
                if (p.revents & POLLIN) {
                        memset(asked, 0, sizeof(*asked));
                        if (seccomp_notify_receive(fd, asked) < 0)
                                continue;
                        *answer = (struct seccomp_notif_resp) {.id = asked->id, .val = abi};
                        (void) seccomp_notify_respond(fd, answer);
                } else if (p.revents)
                        break;
        }
        seccomp_notify_free(asked, answer);
}

int main(int argc, char *argv[]) {
        int pair[2], status;

        if (argc < 3 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                die("ABI COMMAND [ARGUMENT…]");
        pid_t pid = fork();
        if (pid < 0)
                die("fork");
        if (pid == 0)
                start(pair[1], argv + 2);
        close(pair[1]);
        int fd = receive_descriptor(pair[0]);
        answer(fd, atoi(argv[1]));
        if (waitpid(pid, &status, 0) < 0)
                die("waitpid");
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
