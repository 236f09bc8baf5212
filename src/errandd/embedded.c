/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "errandd/daemon.h"
#include "errandd/embedded.h"
#include "errandd/session.h"

#define LOG_NAME "errandd.log"
#define LOG_SIZE_MAX (1024 * 1024) /* then it is begun anew at the next start */
#define BACKLOG 64

typedef struct Embedded {
        Daemon daemon;
        sd_event_source *idle;
        unsigned idle_seconds;
        bool ending;
} Embedded;

static bool any_live(Manager *m) {
        for (Session *s = NULL; (s = manager_next(m, s));)
                if (session_state_live(session_state(s)))
                        return true;
        return false;
}

static int on_second(sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Embedded *e = userdata;
        bool live = any_live(e->daemon.manager);

        if (e->ending && !live)
                return sd_event_exit(e->daemon.event, 0);
        e->idle_seconds = live || bus_connections(e->daemon.bus) > 0 ? 0 : e->idle_seconds + 1;
        if (e->idle_seconds >= EMBEDDED_IDLE_SECONDS) {
                log_info("neither a client nor a session is left: leaving");
                return sd_event_exit(e->daemon.event, 0);
        }
        (void) sd_event_source_set_time_relative(source, e->ending ? 50 * USEC_PER_MSEC : USEC_PER_SEC);
        return 0;
}

static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Embedded *e = userdata;

        if (e->ending)
                return sd_event_exit(e->daemon.event, 0);
        log_info("signal %u: stopping every session", si->ssi_signo);
        e->ending = true;
        manager_end(e->daemon.manager);
        return sd_event_source_set_time(e->idle, 0);
}

static int add_signals(Embedded *e) {
        static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                int r = sd_event_add_signal(e->daemon.event, NULL, signals[i], on_signal, e);
                if (r < 0)
                        return r;
        }
        int r = sd_event_add_time_relative(e->daemon.event, &e->idle, CLOCK_MONOTONIC, USEC_PER_SEC, 100 * USEC_PER_MSEC, on_second, e);
        return r < 0 ? r : sd_event_source_set_enabled(e->idle, SD_EVENT_ON);
}

/* A socket that is there is a dead one's: the state directory is locked. */
static int listen_bus(const Paths *p) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (unlinkat(p->runtime_fd, "bus", 0) < 0 && errno != ENOENT)
                return -errno;
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/bus", p->runtime_fd);
        mode_t mask = umask(0177);
        int r = bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0 ? -errno : 0;
        (void) umask(mask);
        return r < 0 ? r : TAKE_FD(fd);
}

static int open_log(const Paths *p) {
        struct stat st;

        _cleanup_close_ int fd = openat(p->runtime_fd, LOG_NAME, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EPERM;
}

/* Once the state directory is ours, and so is the log. */
static int settle_log(int log) {
        struct stat st;

        if (fstat(log, &st) < 0 || (st.st_size > LOG_SIZE_MAX && ftruncate(log, 0) < 0))
                return -errno;
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                _cleanup_close_ int null = fd == STDIN_FILENO ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -EBADF;
                if (dup2(fd == STDIN_FILENO ? null : log, fd) < 0)
                        return -errno;
        }
        return 0;
}

static int begin(Embedded *e, const EmbeddedOptions *options, Fault *f) {
        Daemon *d = &e->daemon;

        int r = paths_embedded(options->state_dir, options->config, &d->paths, f);
        if (r >= 0 && options->user) {
                d->paths->user = strdup(options->user);
                r = d->paths->user ? 0 : fault_set(f, ERROR_SETUP, "out of memory");
        }
        if (r >= 0)
                r = daemon_open(d, f);
        if (r < 0)
                return r;
        r = d->paths->log_fd = open_log(d->paths);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, LOG_NAME " in %s cannot be opened: %s", d->paths->runtime, strerror(-r));
        return daemon_manage(d, NULL, f);
}

static int serve(Embedded *e, Fault *f) {
        _cleanup_close_ int listener = listen_bus(e->daemon.paths);

        if (listener < 0)
                return fault_set(f, ERROR_SETUP, "%s cannot be listened on: %s", e->daemon.paths->bus, strerror(-listener));
        int r = add_signals(e);
        if (r >= 0)
                r = bus_new(e->daemon.manager, listener, NULL, &e->daemon.bus);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "%s cannot be served: %s", e->daemon.paths->bus, strerror(-r));
        TAKE_FD(listener);
        r = settle_log(e->daemon.paths->log_fd);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, LOG_NAME " cannot be written: %s", strerror(-r));
        daemon_log_report(&e->daemon);
        r = sd_event_loop(e->daemon.event);
        return r < 0 ? fault_set(f, ERROR_SETUP, "the event loop failed: %s", strerror(-r)) : 0;
}

int embedded_run(const EmbeddedOptions *options) {
        Embedded e = {};
        Fault f = {};

        int r = begin(&e, options, &f);
        if (r >= 0)
                r = serve(&e, &f);
        int code = r < 0 ? daemon_fail(&f) : EXIT_STOPPED;
        if (e.daemon.bus)
                (void) unlinkat(e.daemon.paths->runtime_fd, "bus", 0);
        sd_event_source_disable_unref(e.idle);
        daemon_done(&e.daemon);
        return code;
}
