/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "errandd/bus.h"
#include "errandd/config-load.h"
#include "errandd/embedded.h"
#include "errandd/session.h"

#define LOG_NAME "errandd.log"
#define LOG_SIZE_MAX (1024 * 1024) /* then it is begun anew at the next start */
#define BACKLOG 64

typedef struct Embedded {
        sd_event *event;
        Paths *paths;
        Manager *manager;
        Bus *bus;
        sd_event_source *idle;
        unsigned idle_seconds;
        bool ending;
} Embedded;

static int exit_code(const Fault *f) {
        switch (f->code) {
        case ERROR_CONFIGURATION:
                return EXIT_CONFIGURATION;
        case ERROR_NOT_ENFORCEABLE:
                return EXIT_NOT_ENFORCEABLE;
        case ERROR_WRONG_STATE:
                return EXIT_SERVED_ALREADY;
        default:
                return EXIT_FAILED;
        }
}

/* Each line as one of the log's, so that three mistakes are three messages. */
static int fail(Fault *f) {
        char *rest = f->text, *line;
        int code = exit_code(f);

        while (rest && (line = strsep(&rest, "\n")))
                log_error("%s", line);
        if (!f->text)
                log_oom();
        fault_done(f);
        return code;
}

static bool any_live(Manager *m) {
        for (Session *s = NULL; (s = manager_next(m, s));)
                if (session_state_live(session_state(s)))
                        return true;
        return false;
}

static int on_second(sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Embedded *e = userdata;
        bool live = any_live(e->manager);

        if (e->ending && !live)
                return sd_event_exit(e->event, 0);
        e->idle_seconds = live || bus_connections(e->bus) > 0 ? 0 : e->idle_seconds + 1;
        if (e->idle_seconds >= EMBEDDED_IDLE_SECONDS) {
                log_info("neither a client nor a session is left: leaving");
                return sd_event_exit(e->event, 0);
        }
        (void) sd_event_source_set_time_relative(source, e->ending ? 50 * USEC_PER_MSEC : USEC_PER_SEC);
        return 0;
}

static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Embedded *e = userdata;

        if (e->ending)
                return sd_event_exit(e->event, 0);
        log_info("signal %u: stopping every session", si->ssi_signo);
        e->ending = true;
        manager_end(e->manager);
        return sd_event_source_set_time(e->idle, 0);
}

/* What it makes is its own account's alone; it holds keys, so that it leaves no core and nobody of its account reads its memory. */
static int settle_process(void) {
        sigset_t set;

        (void) umask(0077);
        (void) setsid(); /* a terminal's signals are for who sits there */
        if (chdir("/") < 0)
                return -errno;
        (void) prctl(PR_SET_DUMPABLE, 0);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int add_signals(Embedded *e) {
        static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                int r = sd_event_add_signal(e->event, NULL, signals[i], on_signal, e);
                if (r < 0)
                        return r;
        }
        int r = sd_event_add_time_relative(e->event, &e->idle, CLOCK_MONOTONIC, USEC_PER_SEC, 100 * USEC_PER_MSEC, on_second, e);
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

static void log_report(Manager *m) {
        for (char *const *line = manager_report(m); line && *line; line++)
                log_info("%s", *line);
}

static int begin(Embedded *e, const EmbeddedOptions *options, Fault *f) {
        _cleanup_(config_freep) Config *config = NULL;

        int r = paths_embedded(options->state_dir, options->config, &e->paths, f);
        if (r >= 0 && options->user) {
                e->paths->user = strdup(options->user);
                r = e->paths->user ? 0 : fault_set(f, ERROR_SETUP, "out of memory");
        }
        if (r >= 0)
                r = settle_process();
        if (r >= 0)
                r = config_load(e->paths, &config, f);
        if (r >= 0)
                r = paths_open(e->paths, f);
        if (r >= 0) {
                r = e->paths->log_fd = open_log(e->paths);
                if (r < 0)
                        return fault_set(f, ERROR_STORAGE, LOG_NAME " in %s cannot be opened: %s", e->paths->runtime, strerror(-r));
        }
        if (r >= 0)
                r = sd_event_new(&e->event);
        if (r >= 0)
                r = manager_new(e->event, e->paths, NULL, config, &e->manager, f);
        if (r < 0)
                return f->code != ERROR_NONE ? r : fault_set(f, ERROR_SETUP, "%s", strerror(-r));
        TAKE_PTR(config);
        if (manager_config(e->manager)->sandbox.require_full_enforcement && manager_gaps(e->manager)) {
                log_report(e->manager);
                return fault_set(f, ERROR_NOT_ENFORCEABLE, "sandbox.requireFullEnforcement is true; set it to false to run without what is missing");
        }
        return 0;
}

static int serve(Embedded *e, Fault *f) {
        _cleanup_close_ int listener = listen_bus(e->paths);

        if (listener < 0)
                return fault_set(f, ERROR_SETUP, "%s cannot be listened on: %s", e->paths->bus, strerror(-listener));
        int r = add_signals(e);
        if (r >= 0)
                r = bus_new(e->manager, listener, &(BusOptions){.mode = CONFIG_EMBEDDED}, &e->bus);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "%s cannot be served: %s", e->paths->bus, strerror(-r));
        TAKE_FD(listener);
        r = settle_log(e->paths->log_fd);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, LOG_NAME " cannot be written: %s", strerror(-r));
        log_report(e->manager);
        r = sd_event_loop(e->event);
        return r < 0 ? fault_set(f, ERROR_SETUP, "the event loop failed: %s", strerror(-r)) : 0;
}

int embedded_run(const EmbeddedOptions *options) {
        Embedded e = {};
        Fault f = {};

        int r = begin(&e, options, &f);
        if (r >= 0)
                r = serve(&e, &f);
        int code = r < 0 ? fail(&f) : EXIT_STOPPED;
        if (e.bus)
                (void) unlinkat(e.paths->runtime_fd, "bus", 0);
        bus_free(e.bus);
        manager_free(e.manager);
        sd_event_source_disable_unref(e.idle);
        sd_event_unref(e.event);
        paths_free(e.paths);
        return code;
}
