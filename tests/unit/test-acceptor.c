/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "broker/acceptor.h"
#include "test.h"

static int kept; /* the guest's duplicate */
static int holder = -EBADF; /* of the port, so that nobody else listens there once the acceptor does no more */
static struct sockaddr_in address;
static unsigned accepted;
static int last = -EBADF;

/* Stands in for the race that a guest wins: a connection is reported, and is gone when accept(2) comes for it. */
static atomic_int lie_about = -1;
static atomic_bool lied;

int poll(struct pollfd *p, nfds_t n, int timeout) {
        struct timespec ts = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};

        /* The compiler believes that poll only writes there. */
        struct pollfd *volatile list = p;
        if (n > 0 && list[0].fd == atomic_load(&lie_about) && !atomic_exchange(&lied, true)) {
                list[0].revents = POLLIN;
                for (nfds_t i = 1; i < n; i++)
                        list[i].revents = 0;
                return 1;
        }
        return (int) syscall(SYS_ppoll, p, n, timeout < 0 ? NULL : &ts, NULL, 0);
}

static void on_accept(_unused_ void *userdata, int fd) {
        accepted++;
        safe_close(last);
        last = fd;
}

static int make_listener(void) {
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){1}, sizeof(int)), 0);
        CHECK_INT(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
        CHECK_INT(listen(fd, 128), 0);
        CHECK_INT(getsockname(fd, (struct sockaddr *) &address, &size), 0);
        safe_close(holder);
        holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_INT(setsockopt(holder, SOL_SOCKET, SO_REUSEPORT, &(int){1}, sizeof(int)), 0);
        CHECK_INT(bind(holder, (struct sockaddr *) &address, sizeof(address)), 0);
        kept = dup(fd);
        return fd;
}

static int dial(void) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) == 0)
                return fd;
        int r = -errno;
        close(fd);
        return r;
}

static void run_until_accepted(sd_event *e, unsigned n) {
        usec_t start = now_monotonic();

        while (accepted < n && now_monotonic() - start < 10 * USEC_PER_SEC)
                CHECK(sd_event_run(e, 100 * USEC_PER_MSEC) >= 0);
        CHECK_INT(accepted, n);
}

static void test_accepts(void) {
        sd_event *e;
        Acceptor *a;
        int clients[200];

        accepted = 0;
        CHECK(sd_event_new(&e) >= 0);
        CHECK_INT(acceptor_new(e, make_listener(), on_accept, NULL, &a), 0);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++) {
                clients[i] = dial();
                CHECK(clients[i] >= 0);
                if (i % 50 == 0)
                        run_until_accepted(e, (unsigned) i + 1);
        }
        run_until_accepted(e, ELEMENTSOF(clients));
        CHECK(fcntl(last, F_GETFL) & O_NONBLOCK);
        CHECK(fcntl(last, F_GETFD) & FD_CLOEXEC);
        close(kept);
        acceptor_free(a);
        sd_event_unref(e);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                close(clients[i]);
        CHECK_INT(dial(), -ECONNREFUSED);
}

/* Bites where the kernel's default is another, as almost everywhere. */
static void test_unpaced(void) {
        char name[16] = "";
        socklen_t size = sizeof(name);
        sd_event *e;
        Acceptor *a;

        accepted = 0;
        CHECK(sd_event_new(&e) >= 0);
        CHECK_INT(acceptor_new(e, make_listener(), on_accept, NULL, &a), 0);
        int client = dial();
        run_until_accepted(e, 1);
        CHECK_INT(getsockopt(last, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
        CHECK_STR(name, "reno");
        close(kept);
        close(client);
        acceptor_free(a);
        sd_event_unref(e);
}

static void test_blocking_accept(void) {
        sd_event *e;
        Acceptor *a;

        accepted = 0;
        CHECK(sd_event_new(&e) >= 0);
        int listener = make_listener();
        CHECK_INT(acceptor_new(e, listener, on_accept, NULL, &a), 0);
        /* The description is shared: what the guest clears is cleared for the broker as well. */
        CHECK_INT(fd_nonblock(kept, false), 0);
        atomic_store(&lied, false);
        atomic_store(&lie_about, listener);
        int first = dial(); /* wakes the thread, which then is lied to, and stands in accept */
        run_until_accepted(e, 1);
        usec_t start = now_monotonic();
        while (!atomic_load(&lied) && now_monotonic() - start < 10 * USEC_PER_SEC)
                (void) usleep(1000);
        CHECK(atomic_load(&lied));
        (void) usleep(20000);

        /* The loop goes on ... */
        start = now_monotonic();
        CHECK(sd_event_run(e, 0) >= 0);
        CHECK(now_monotonic() - start < 10 * USEC_PER_SEC);
        /* ... the next connection is served ... */
        int second = dial();
        run_until_accepted(e, 2);
        /* ... and a thread that stands in accept is stopped at once. */
        atomic_store(&lied, false);
        int third = dial();
        run_until_accepted(e, 3);
        (void) usleep(20000);
        start = now_monotonic();
        acceptor_free(a);
        CHECK(now_monotonic() - start < 10 * USEC_PER_SEC);
        CHECK_INT(dial(), -ECONNREFUSED);
        atomic_store(&lie_about, -1);
        sd_event_unref(e);
        close(kept);
        close(first);
        close(second);
        close(third);
}

static void test_shut_down_by_guest(void) {
        sd_event *e;
        Acceptor *a;

        accepted = 0;
        CHECK(sd_event_new(&e) >= 0);
        CHECK_INT(acceptor_new(e, make_listener(), on_accept, NULL, &a), 0);
        CHECK_INT(shutdown(kept, SHUT_RDWR), 0);
        clock_t before = clock();
        (void) usleep(300000);
        CHECK(clock() - before < CLOCKS_PER_SEC / 10); /* it does not spin on it */
        socklen_t size = sizeof(address);
        CHECK_INT(listen(kept, 128), 0); /* on another port, as the first was the kernel's choice */
        CHECK_INT(getsockname(kept, (struct sockaddr *) &address, &size), 0);
        int client = dial();
        CHECK(client >= 0);
        run_until_accepted(e, 1);
        close(client);
        acceptor_free(a);
        sd_event_unref(e);
        close(kept);
}

int main(void) {
        RUN(test_accepts, "S047: connections come from the thread, and its end closes the port");
        RUN(test_unpaced, "connections: no timer paces what goes to a session");
        RUN(test_blocking_accept, "S046 hand-over: a guest that makes accept block stalls neither the loop nor close");
        RUN(test_shut_down_by_guest, "hand-over: a guest that shuts its listener down does not make the thread spin");
        safe_close(last);
        safe_close(holder);
        return TEST_END();
}
