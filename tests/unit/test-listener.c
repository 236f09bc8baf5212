/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "broker/listener.h"
#include "test.h"

static uint64_t own;

typedef struct Wanted {
        int domain, type, protocol;
        uint32_t address;
        bool listens;
} Wanted;

static int make(const Wanted *w) {
        int fd = socket(w->domain, w->type | SOCK_CLOEXEC, w->protocol);
        if (fd < 0)
                return -errno;
        if (w->domain == AF_INET) {
                struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(w->address)};
                if (bind(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                        return -errno;
        } else if (w->domain == AF_INET6) {
                struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
                if (bind(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                        return -errno;
        }
        if (w->listens && listen(fd, 5) < 0)
                return -errno;
        return fd;
}

static int enter_namespace(void) {
        struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};

        if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
                return -errno;
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        return ioctl(fd, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

/* The socket of that kind in a network namespace of its own. */
static int make_elsewhere(const Wanted *w) {
        int pair[2], fd = -EBADF, status;
        char byte;
        size_t n;

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                int r = enter_namespace();
                if (r >= 0)
                        r = make(w);
                _exit(r < 0 || send_fds(pair[1], "x", 1, &r, 1) != 1 ? 1 : 0);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(status, 0);
        CHECK_INT(recv_fds(pair[0], &byte, 1, &fd, 1, &n), 1);
        close(pair[0]);
        close(pair[1]);
        return fd;
}

static int check(int fd, const char **ret_problem) {
        uint32_t address;
        uint16_t port;
        return listener_check(fd, own, &address, &port, ret_problem);
}

static const Wanted good = {AF_INET, SOCK_STREAM, 0, INADDR_LOOPBACK, true};

static void test_good(void) {
        const char *problem = NULL;
        uint32_t address = 0;
        uint16_t port = 0;

        _cleanup_close_ int fd = make_elsewhere(&good);
        CHECK_INT(listener_check(fd, own, &address, &port, &problem), 0);
        CHECK(!problem);
        CHECK(address == htonl(INADDR_LOOPBACK));
        CHECK(port != 0);
}

static void test_own_namespace(void) {
        const char *problem;

        _cleanup_close_ int fd = make(&good);
        CHECK(fd >= 0);
        CHECK_INT(check(fd, &problem), -EBADMSG);
        CHECK_STR(problem, "the listener is in the broker's own network namespace, not in a session's");
}

static void test_bad(void) {
        static const struct {
                Wanted wanted;
                const char *problem;
        } bad[] = {
                {{AF_INET, SOCK_STREAM, 0, INADDR_LOOPBACK, false}, "the listener does not listen"},
                {{AF_INET, SOCK_STREAM, 0, INADDR_ANY, true}, "the listener is not bound to a loopback address and a port"},
                {{AF_INET, SOCK_DGRAM, 0, INADDR_LOOPBACK, false}, "the listener is not a TCP socket"},
                {{AF_INET6, SOCK_STREAM, 0, 0, true}, "the listener is not an IPv4 socket"},
                {{AF_UNIX, SOCK_STREAM, 0, 0, false}, "the listener is not an IPv4 socket"},
                {{AF_INET, SOCK_STREAM, 262 /* MPTCP */, INADDR_LOOPBACK, true}, "the listener is not a TCP socket"},
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                const char *problem = NULL;
                _cleanup_close_ int fd = make_elsewhere(&bad[i].wanted);
                CHECK_INT(check(fd, &problem), -EBADMSG);
                CHECK_STR(problem, bad[i].problem);
        }
        const char *problem = NULL;
        _cleanup_close_ int file = open("/dev/null", O_RDWR | O_CLOEXEC);
        CHECK_INT(check(file, &problem), -EBADMSG);
        CHECK_STR(problem, "the listener is not an IPv4 socket");
}

int main(void) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (netns_cookie(fd, &own) < 0) {
                printf("1..0 # SKIP SO_NETNS_COOKIE needs Linux 5.14\n");
                return 0;
        }
        close(fd);
        RUN(test_good, "S042: a loopback TCP listener of another network namespace is taken");
        RUN(test_own_namespace, "S072: one of the broker's own namespace is not");
        RUN(test_bad, "S072: other families, types, protocols, addresses and files are not");
        return TEST_END();
}
