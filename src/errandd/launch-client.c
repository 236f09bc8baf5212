/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/launch-client.h"
#include "errandd/paths.h"
#include "errandd/spawn.h"

#define AGAIN_USEC USEC_PER_SEC /* between two starts of one that dies at once, or cannot be started; then longer and longer */
#define AGAIN_MAX_USEC (30 * USEC_PER_SEC)
#define END_MSEC 2000

struct LaunchClient {
        sd_event *event;
        Identity identity;
        bool other_account;
        int socket, log;
        LaunchHandler handler;
        Channel *channel; /* NULL: it is not running */
        pid_t pid;
        sd_event_source *child, *again;
        usec_t restarted; /* when it last had to be */
        usec_t wait;      /* after a start that failed; 0: after none */
        uint64_t strange; /* events that made no sense */
};

uid_t launch_client_uid(const LaunchClient *l) {
        return l->identity.uid;
}

const Identity *launch_client_identity(const LaunchClient *l) {
        return &l->identity;
}

/* It leaves by itself when nothing is left of its sessions; one that does not is not waited for. */
static void reap(pid_t pid) {
        _cleanup_close_ int fd = pid > 0 ? pidfd_open(pid, 0) : -EBADF;
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (fd >= 0 && poll(&p, 1, END_MSEC) > 0)
                (void) waitpid(pid, NULL, WNOHANG);
}

LaunchClient *launch_client_free(LaunchClient *l) {
        if (!l)
                return NULL;
        l->child = sd_event_source_disable_unref(l->child);
        sd_event_source_disable_unref(l->again);
        channel_free(l->channel); /* the end of its connection makes it stop what is left and leave */
        reap(l->pid);
        sd_event_unref(l->event);
        return mfree(l);
}

static void on_event(Message *m, void *userdata) {
        LaunchClient *l = userdata;
        JsonObject *o = message_object(m);
        const char *session;
        uint64_t status = 0;

        if (json_get_string(o, "session", &session) >= 0 && streq(message_type(m), "scope-ended")) {
                l->handler.scope_ended(session, l->handler.userdata);
                return;
        }
        if (!streq(message_type(m), "shim-exited") || json_get_string(o, "session", &session) < 0) {
                if (log_is_due(++l->strange))
                        log_warning("an event of the launcher was not understood and is ignored, %llu of them so far", (unsigned long long) l->strange);
                return;
        }
        (void) json_get_u64(o, "status", INT32_MAX, &status);
        l->handler.shim_exited(session, (int) status, l->handler.userdata);
}

static int start(LaunchClient *l);
static void start_later(LaunchClient *l);

static int on_again(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        LaunchClient *l = userdata;

        l->again = sd_event_source_disable_unref(l->again);
        int r = l->channel ? 0 : start(l);
        if (r >= 0) {
                l->wait = 0;
                l->handler.started_again(l, l->handler.userdata);
                return 0;
        }
        if (l->wait == 0)
                log_error_errno(r, "errand-launch cannot be %s again, and that is tried on: %m", l->socket >= 0 ? "reached" : "started");
        l->wait = l->wait == 0 ? AGAIN_USEC : MIN(2 * l->wait, AGAIN_MAX_USEC);
        start_later(l);
        return 0;
}

/* At once, but for one that ends at once, again and again. */
static void start_later(LaunchClient *l) {
        usec_t now = now_monotonic(), wait = MAX(l->wait, l->restarted > 0 && now - l->restarted < AGAIN_USEC ? AGAIN_USEC : UINT64_C(0));

        l->restarted = now;
        if (!l->again && sd_event_add_time_relative(l->event, &l->again, CLOCK_MONOTONIC, wait, 0, on_again, l) < 0)
                log_error("errand-launch cannot be started again");
}

static int on_child(_unused_ sd_event_source *s, _unused_ const siginfo_t *si, void *userdata) {
        LaunchClient *l = userdata;

        log_warning("errand-launch ended (%s %d) and is started again; sessions that run go on",
                    si->si_code == CLD_EXITED ? "status" : "signal", si->si_status);
        l->pid = 0;
        l->child = sd_event_source_disable_unref(l->child);
        start_later(l);
        return 0;
}

static void on_gone(void *userdata) {
        LaunchClient *l = userdata;

        l->channel = channel_free(l->channel);
        if (l->socket < 0)
                return;
        log_warning("errand-launch is gone and is connected to again; sessions that run go on");
        start_later(l);
}

static int listen_to(LaunchClient *l, int fd) {
        return channel_new(l->event, fd, &(ChannelHandler){.event = on_event, .gone = on_gone, .userdata = l}, &l->channel);
}

static int start_child(LaunchClient *l) {
        char *const argv[] = {(char *) "errand-launch", (char *) "--shim-fd", (char *) "4", (char *) "--bailey-fd", (char *) "5", NULL};
        char home[sizeof("HOME=") + sizeof(l->identity.home)];
        char *const environment[] = {(char *) "PATH=/usr/local/bin:/usr/bin:/bin", (char *) "LANG=C.UTF-8", home, NULL};
        int pair[2];

        (void) snprintf(home, sizeof(home), "HOME=%s", l->identity.home);
        /* Opened here: the launcher's account may not be able to go where they are. */
        _cleanup_close_ int program = paths_open_program("errand-launch"), shim = paths_open_program("errand-shim"),
                            bailey = paths_open_program("bailey");
        if (program < 0 || shim < 0 || bailey < 0)
                return MIN(MIN(program, shim), bailey);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0], theirs = pair[1];
        int r = spawn(&(SpawnRequest){
                .program = program,
                .argv = argv,
                .environment = environment,
                .fds = (const int[]){theirs, shim, bailey},
                .n_fds = 3,
                .log = l->log,
                .identity = l->other_account ? &l->identity : NULL,
        }, &l->pid);
        if (r < 0)
                return r;
        r = sd_event_add_child(l->event, &l->child, l->pid, WEXITED, on_child, l);
        return r < 0 ? r : listen_to(l, TAKE_FD(ours));
}

static int start(LaunchClient *l) {
        if (l->socket < 0)
                return start_child(l);
        int fd = channel_connect(l->socket, "launch", UID_ANY);
        return fd < 0 ? fd : listen_to(l, fd);
}

int launch_client_new(sd_event *event, const Identity *identity, int socket, int log, const LaunchHandler *handler, LaunchClient **ret, Fault *f) {
        _cleanup_(launch_client_freep) LaunchClient *l = calloc(1, sizeof(LaunchClient));

        if (!l)
                return fault_set(f, ERROR_SETUP, "out of memory");
        l->event = sd_event_ref(event);
        l->handler = *handler;
        l->identity = *identity;
        l->socket = socket;
        l->log = log;
        l->other_account = identity->uid != geteuid();
        int r = start(l);
        if (r < 0 && socket >= 0)
                return fault_set(f, ERROR_SETUP, "errand-launch cannot be reached: %s; systemctl start errand-launch.socket makes its socket", strerror(-r));
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "errand-launch cannot be started as uid %u: %s", identity->uid, strerror(-r));
        *ret = TAKE_PTR(l);
        return 0;
}

/* One that listens is there as soon as it is connected to. */
static bool connected(LaunchClient *l) {
        if (!l->channel && l->socket >= 0)
                (void) start(l);
        return l->channel;
}

typedef struct FdList {
        int fds[MESSAGE_FDS_MAX];
        size_t n;
} FdList;

static void add_fd(JsonWriter *w, FdList *l, const char *name, int fd) {
        if (fd < 0)
                return;
        json_add_string(w, NULL, name);
        l->fds[l->n++] = fd;
}

static void add_fds(JsonWriter *w, const Launch *launch, FdList *l) {
        json_open_array(w, "fds");
        add_fd(w, l, "project", launch->project);
        add_fd(w, l, "policy", launch->policy);
        add_fd(w, l, "transcript", launch->transcript);
        add_fd(w, l, "events", launch->events);
        add_fd(w, l, "environment", launch->environment);
        add_fd(w, l, "scrub", launch->scrub);
        if (launch->broker_socket)
                add_fd(w, l, "token", launch->token);
        if (!launch->interactive) {
                add_fd(w, l, "stdin", launch->stdio[0]);
                add_fd(w, l, "stdout", launch->stdio[1]);
                add_fd(w, l, "stderr", launch->stdio[2]);
        }
        json_close_array(w);
}

static void add_scope(JsonWriter *w, const LaunchScope *scope, const char *session) {
        char description[64];

        if (!scope)
                return;
        (void) snprintf(description, sizeof(description), "errand session %s", session);
        json_open_object(w, "scope");
        json_add_string(w, "unit", scope->unit);
        json_add_string(w, "slice", "errand.slice");
        json_add_string(w, "description", description);
        json_add_u64(w, "memoryMax", scope->memory_max);
        json_add_u64(w, "memorySwapMax", 0);
        json_add_u64(w, "tasksMax", scope->tasks_max);
        json_add_u64(w, "cpuQuotaPerSecUSec", scope->cpu_quota_per_sec);
        json_add_bool(w, "delegate", true);
        json_close_object(w);
}

static void on_prepared(_unused_ Message *m, const char *problem, _unused_ void *userdata) {
        if (problem)
                log_debug("errand-launch makes no scope ahead: %s", problem);
}

void launch_client_prepare(LaunchClient *l, const char *session, const LaunchScope *scope) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (!connected(l))
                return;
        channel_open(l->channel, &w, "prepare");
        if (session) {
                json_add_string(&w, "session", session);
                add_scope(&w, scope, session);
        }
        (void) channel_send(l->channel, &w, NULL, 0, on_prepared, NULL);
}

static void add_conversation(JsonWriter *w, const LaunchConversation *c) {
        if (!c)
                return;
        json_open_object(w, "conversation");
        json_add_string(w, "protocol", c->protocol);
        json_add_u64(w, "startupMs", c->startup / USEC_PER_MSEC);
        json_add_u64(w, "questionMs", c->question / USEC_PER_MSEC);
        json_add_u64(w, "abortMs", c->abort / USEC_PER_MSEC);
        json_close_object(w);
}

int launch_client_launch(LaunchClient *l, const Launch *launch, ChannelReply reply, void *userdata, Fault *f) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        FdList fds = {};
        char listen[32];

        if (!connected(l))
                return fault_set(f, ERROR_SETUP, "errand-launch is not running; it is being started again");
        channel_open(l->channel, &w, "launch");
        json_add_string(&w, "session", launch->session);
        json_add_string(&w, "backend", "bailey");
        json_add_strings(&w, "command", launch->command);
        json_add_bool(&w, "interactive", launch->interactive);
        if (launch->interactive && launch->rows > 0 && launch->columns > 0) {
                json_add_u64(&w, "rows", launch->rows);
                json_add_u64(&w, "columns", launch->columns);
        }
        json_add_string(&w, "home", launch->home);
        if (launch->broker_socket) {
                (void) snprintf(listen, sizeof(listen), "127.0.0.1:%u", launch->port);
                json_add_string(&w, "brokerSocket", launch->broker_socket);
                json_add_string(&w, "listen", listen);
        }
        if (launch->proxy_net)
                json_add_bool(&w, "proxyNet", true);
        json_add_bool(&w, "strict", launch->strict);
        json_add_strings(&w, "acceptGaps", launch->accept_gaps);
        json_add_u64(&w, "graceMs", launch->grace / USEC_PER_MSEC);
        json_add_u64(&w, "fileMax", launch->file_max);
        json_add_string(&w, "shimSocket", launch->shim_socket);
        add_scope(&w, launch->scope, launch->session);
        add_conversation(&w, launch->conversation);
        add_fds(&w, launch, &fds);
        int r = channel_send(l->channel, &w, fds.fds, fds.n, reply, userdata);
        if (r == -EMSGSIZE)
                return fault_set(f, ERROR_LIMIT, "the command is too long: a launch holds 64 KiB");
        return r < 0 ? fault_set(f, ERROR_SETUP, "errand-launch cannot be asked: %s", strerror(-r)) : 0;
}

void launch_client_forget(LaunchClient *l, const void *userdata) {
        if (l->channel)
                channel_forget(l->channel, userdata);
}

static int ask(LaunchClient *l, const char *type, const char *session, const char *socket, int state, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (!connected(l))
                return -ENOTCONN;
        channel_open(l->channel, &w, type);
        if (session)
                json_add_string(&w, "session", session);
        if (socket)
                json_add_string(&w, "shimSocket", socket);
        if (state >= 0)
                message_add_fd(&w, "state");
        return channel_send_owned(l->channel, &w, &state, state >= 0 ? 1 : 0, reply, drop, userdata);
}

int launch_client_adopt(LaunchClient *l, const char *session, const char *socket) {
        return ask(l, "adopt", session, socket, -EBADF, NULL, NULL, NULL);
}

int launch_client_collect(LaunchClient *l, const char *session, int state, ChannelReply reply, ChannelDrop drop, void *userdata) {
        return ask(l, "collect", session, NULL, state, reply, drop, userdata);
}

static void on_stopped(_unused_ Message *m, const char *problem, _unused_ void *userdata) {
        if (!problem)
                log_info("a session that was being started is stopped");
}

int launch_client_stop(LaunchClient *l, const char *session) {
        return ask(l, "stop", session, NULL, -EBADF, on_stopped, NULL, NULL);
}

int launch_client_kill(LaunchClient *l, const char *session, int signal) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (!connected(l))
                return -ENOTCONN;
        channel_open(l->channel, &w, "kill");
        json_add_string(&w, "session", session);
        json_add_u64(&w, "signal", (uint64_t) signal);
        return channel_send(l->channel, &w, NULL, 0, NULL, NULL);
}

int launch_client_usage(LaunchClient *l, const char *session, ChannelReply reply, void *userdata) {
        return ask(l, "usage", session, NULL, -EBADF, reply, NULL, userdata);
}

int launch_client_disk(LaunchClient *l, int state, int project, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (!connected(l))
                return -ENOTCONN;
        channel_open(l->channel, &w, "disk");
        json_open_array(&w, "fds");
        json_add_string(&w, NULL, "state");
        json_add_string(&w, NULL, "project");
        json_close_array(&w);
        return channel_send_owned(l->channel, &w, (const int[]){state, project}, 2, reply, drop, userdata);
}

int launch_client_probe(LaunchClient *l, ChannelReply reply, void *userdata) {
        return ask(l, "probe", NULL, NULL, -EBADF, reply, NULL, userdata);
}

int launch_client_make_project(LaunchClient *l, int root, const char *name, uid_t owner, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (!connected(l))
                return -ENOTCONN;
        channel_open(l->channel, &w, "mkproject");
        json_add_string(&w, "name", name);
        json_add_u64(&w, "ownerUid", owner);
        message_add_fd(&w, "root");
        return channel_send_owned(l->channel, &w, &root, 1, reply, drop, userdata);
}
