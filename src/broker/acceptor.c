/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "broker/acceptor.h"

#define ACCEPTOR_STACK_SIZE (128U * 1024U)
#define ACCEPTOR_SIGNAL SIGUSR2 /* interrupts accept(2); it does nothing else */
#define RETRY_MSEC 100          /* after EMFILE, or when the session shut its own listener down */
#define STOP_STEP_USEC (10 * USEC_PER_MSEC)
#define STOP_STEPS 50U

/* Freed by the loop once the thread is gone; left behind when it will not go. */
struct Acceptor {
        pthread_t thread;
        atomic_bool stopping;
        int listener;
        int wake;     /* eventfd: stop */
        int queue[2]; /* pipe of ints: accepted fds */
        sd_event_source *io;
        AcceptHandler handler;
        void *userdata;
};

static void on_signal(_unused_ int sig) {
}

/* True when the thread is to stop. */
static bool pause_for(Acceptor *a, int msec) {
        struct pollfd p = {.fd = a->wake, .events = POLLIN};
        (void) poll(&p, 1, msec);
        return atomic_load(&a->stopping);
}

/* The session made the listener and can still set its options, which those accepted inherit. With SO_LINGER close(2) waits for the
 * other side, O_NONBLOCK or not: the loop would stand still for as long as the session likes. With SO_TIMESTAMPING each byte that is sent
 * leaves something in the socket's error queue, which nobody reads, and the loop would be told of it for ever. */
static void forget_options(int fd) {
        static const struct linger off = {};
        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
        (void) setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &(int){0}, sizeof(int));
}

/* What is accepted inherits it. Between the two ends of a loopback interface there is no path to be fair on; but a host whose default is BBR paces
 * every piece there by a timer, which takes longer than the piece. Reno is in every kernel, and open to every account. */
static void forget_path(int listener) {
        (void) setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, "reno", STRLEN("reno"));
}

static void *acceptor_thread(void *userdata) {
        Acceptor *a = userdata;

        while (!atomic_load(&a->stopping)) {
                struct pollfd p[2] = {{.fd = a->listener, .events = POLLIN}, {.fd = a->wake, .events = POLLIN}};

                if (poll(p, 2, -1) < 0 || p[1].revents != 0)
                        continue;
                int fd = accept4(a->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (fd >= 0) {
                        forget_options(fd);
                        /* A full pipe makes this wait for the loop; a closed one means that it stops. */
                        ssize_t n;
                        do
                                n = write(a->queue[1], &fd, sizeof(fd));
                        while (n < 0 && errno == EINTR && !atomic_load(&a->stopping));
                        if (n != (ssize_t) sizeof(fd))
                                safe_close(fd);
                } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && errno != EPROTO)
                        (void) pause_for(a, RETRY_MSEC);
        }
        return NULL;
}

static int on_queue(_unused_ sd_event_source *s, int fd, _unused_ uint32_t revents, void *userdata) {
        Acceptor *a = userdata;
        int fds[32];

        /* Bounded, so that a storm of connections leaves the loop time for the rest. The handler may free a. */
        ssize_t n = read(fd, fds, sizeof(fds));
        if (n <= 0)
                return 0;
        AcceptHandler handler = a->handler;
        void *data = a->userdata;
        for (size_t i = 0; i < (size_t) n / sizeof(int); i++)
                handler(data, fds[i]);
        return 0;
}

static void drain(Acceptor *a) {
        int fd;
        while (read(a->queue[0], &fd, sizeof(fd)) == (ssize_t) sizeof(fd))
                safe_close(fd);
}

static void release(Acceptor *a) {
        sd_event_source_disable_unref(a->io);
        safe_close(a->wake);
        safe_close(a->queue[0]);
        safe_close(a->queue[1]);
        free(a);
}

static int start_thread(Acceptor *a) {
        struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
        pthread_attr_t attr;
        sigset_t set, old;

        if (sigaction(ACCEPTOR_SIGNAL, &action, NULL) < 0)
                return -errno;
        if (pthread_attr_init(&attr) != 0)
                return -ENOMEM;
        (void) pthread_attr_setstacksize(&attr, ACCEPTOR_STACK_SIZE);
        (void) sigfillset(&set);
        (void) sigdelset(&set, ACCEPTOR_SIGNAL);
        (void) pthread_sigmask(SIG_SETMASK, &set, &old);
        int r = pthread_create(&a->thread, &attr, acceptor_thread, a);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        (void) pthread_attr_destroy(&attr);
        return -r;
}

int acceptor_new(sd_event *event, int listener, AcceptHandler handler, void *userdata, Acceptor **ret) {
        Acceptor *a = calloc(1, sizeof(Acceptor));
        if (!a)
                return -ENOMEM;
        *a = (Acceptor){.listener = listener, .wake = -EBADF, .queue = {-EBADF, -EBADF}, .handler = handler, .userdata = userdata};

        int r = 0;
        a->wake = eventfd(0, EFD_CLOEXEC);
        if (a->wake < 0 || pipe2(a->queue, O_CLOEXEC) < 0)
                r = -errno;
        if (r >= 0)
                r = fd_nonblock(a->queue[0], true);
        if (r >= 0)
                r = fd_nonblock(listener, true); /* as long as the session leaves it so; nothing rests on it */
        if (r >= 0)
                forget_path(listener);
        if (r >= 0)
                r = sd_event_add_io(event, &a->io, a->queue[0], EPOLLIN, on_queue, a);
        if (r >= 0)
                r = start_thread(a);
        if (r < 0) {
                release(a);
                return r;
        }
        *ret = a;
        return 0;
}

static Acceptor *stop(Acceptor *a, bool shut) {
        if (!a)
                return NULL;
        atomic_store(&a->stopping, true);
        (void) eventfd_write(a->wake, 1);

        for (unsigned step = 0; step < STOP_STEPS; step++) {
                struct timespec until;

                /* Each time: the session can make the socket listen again, and the signal can come a moment before accept(2)
                 * begins. */
                if (shut)
                        (void) shutdown(a->listener, SHUT_RDWR);
                (void) pthread_kill(a->thread, ACCEPTOR_SIGNAL);
                drain(a); /* makes room for a write that waits */
                (void) clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_nsec += (long) (STOP_STEP_USEC * 1000);
                if (until.tv_nsec >= 1000000000L) {
                        until.tv_nsec -= 1000000000L;
                        until.tv_sec++;
                }
                if (pthread_clockjoin_np(a->thread, NULL, CLOCK_MONOTONIC, &until) == 0) {
                        safe_close(a->listener);
                        drain(a);
                        release(a);
                        return NULL;
                }
        }
        log_warning("the session keeps its listener's accept from ending; leaving that thread behind");
        a->io = sd_event_source_disable_unref(a->io);
        (void) pthread_detach(a->thread);
        return NULL;
}

Acceptor *acceptor_free(Acceptor *a) {
        return stop(a, true);
}

Acceptor *acceptor_leave(Acceptor *a) {
        return stop(a, false);
}
