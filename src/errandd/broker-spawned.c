/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "errandd/broker-process.h"
#include "errandd/paths.h"
#include "errandd/spawn.h"

#define END_USEC (2 * USEC_PER_SEC) /* long enough for its receipts to be on disk */
#define SESSION_BACKLOG 4 /* one is expected */

typedef struct Spawned {
        BrokerProcess process;
        sd_event *event;
        int control;
        pid_t pid; /* 0: reaped */
        sd_event_source *child, *patience, *begin;
} Spawned;

static void spawned_kill(BrokerProcess *p) {
        Spawned *s = (Spawned *) p;

        if (s->pid > 0)
                (void) kill(s->pid, SIGKILL); /* not reaped yet, so the number is still its own */
}

static void spawned_free(BrokerProcess *p) {
        Spawned *s = (Spawned *) p;

        sd_event_source_disable_unref(s->child);
        if (s->pid > 0) {
                spawned_kill(p);
                while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        sd_event_source_disable_unref(s->patience);
        sd_event_source_disable_unref(s->begin);
        safe_close(s->control);
        sd_event_unref(s->event);
        free(s);
}

static int on_patience(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        log_warning("a broker did not end in time and is killed");
        spawned_kill(userdata);
        return 0;
}

static void spawned_end(BrokerProcess *p) {
        Spawned *s = (Spawned *) p;

        if (s->pid <= 0)
                return;
        (void) kill(s->pid, SIGTERM);
        s->patience = sd_event_source_disable_unref(s->patience);
        if (sd_event_add_time_relative(s->event, &s->patience, CLOCK_MONOTONIC, END_USEC, 0, on_patience, p) < 0)
                spawned_kill(p);
}

static int on_child(_unused_ sd_event_source *source, const siginfo_t *si, void *userdata) {
        Spawned *s = userdata;
        char how[32];

        (void) snprintf(how, sizeof(how), "%s %d", si->si_code == CLD_EXITED ? "status" : "signal", si->si_status);
        s->pid = 0;
        s->child = sd_event_source_disable_unref(s->child);
        s->patience = sd_event_source_disable_unref(s->patience);
        s->process.handler.ended(how, s->process.handler.userdata);
        return 0;
}

/* From the event loop, as with every other way to start one. */
static int on_begin(_unused_ sd_event_source *source, void *userdata) {
        Spawned *s = userdata;

        s->begin = sd_event_source_disable_unref(s->begin);
        s->process.handler.started(TAKE_FD(s->control), s->process.handler.userdata);
        return 0;
}

/* Listens as `session` in that directory, for the payload's account alone. */
static int listen_session(const BrokerSpawn *spawn) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (unlinkat(spawn->directory, "session", 0) < 0 && errno != ENOENT) /* of an earlier start */
                return -errno;
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/session", spawn->directory);
        mode_t mask = umask(0177);
        int r = bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
        (void) umask(mask);
        if (r >= 0 && spawn->payload && fchownat(spawn->directory, "session", spawn->payload->uid, spawn->payload->gid, AT_SYMLINK_NOFOLLOW) < 0)
                r = -errno;
        if (r >= 0 && listen(fd, SESSION_BACKLOG) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}

static int start_process(Spawned *s, const BrokerSpawn *spawn_request, int control, int session) {
        char *const argv[] = {(char *) "errand-broker", NULL}, *const environment[] = {(char *) "PATH=/usr/bin:/bin", (char *) "LANG=C.UTF-8", NULL};
        const int fds[] = {control, session};

        _cleanup_close_ int program = paths_open_program("errand-broker");
        if (program < 0)
                return program;
        int r = spawn(&(SpawnRequest){
                .program = program,
                .argv = argv,
                .environment = environment,
                .fds = fds,
                .n_fds = ELEMENTSOF(fds),
                .activation = "control:session",
                .log = spawn_request->log,
                .identity = spawn_request->identity,
                .bound = true,
        }, &s->pid);
        return r < 0 ? r : sd_event_add_child(s->event, &s->child, s->pid, WEXITED, on_child, s);
}

static const BrokerProcessClass spawned_class = {.end = spawned_end, .kill = spawned_kill, .free = spawned_free};

int broker_spawned_new(sd_event *event, const BrokerSpawn *spawn_request, const BrokerProcessHandler *handler, BrokerProcess **ret, Fault *f) {
        Spawned *s = calloc(1, sizeof(Spawned));
        int pair[2];

        if (!s)
                return fault_set(f, ERROR_SETUP, "out of memory");
        *s = (Spawned){.process = {.class = &spawned_class, .handler = *handler}, .event = sd_event_ref(event), .control = -EBADF};
        _cleanup_(broker_process_freep) BrokerProcess *p = &s->process;
        _cleanup_close_ int session = listen_session(spawn_request);
        if (session < 0)
                return fault_set(f, ERROR_SETUP, "the broker's session socket cannot be made: %s", strerror(-session));
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return fault_set(f, ERROR_SETUP, "no socket for the broker: %s", strerror(errno));
        s->control = pair[0];
        _cleanup_close_ int theirs = pair[1];
        int r = start_process(s, spawn_request, theirs, session);
        if (r >= 0)
                r = sd_event_add_defer(event, &s->begin, on_begin, s);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "errand-broker cannot be started: %s", strerror(-r));
        *ret = TAKE_PTR(p);
        return 0;
}
