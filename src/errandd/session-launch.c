/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/connect-place.h"
#include "errandd/environment.h"
#include "errandd/policy-writer.h"
#include "errandd/session-run.h"

#define POLICY_NAME "policy.toml"

/* Everything that a launch hands over, closed again afterwards. */
typedef struct Parts {
        char *home, *broker_socket, *shim_socket;
        char *connect; /* NULL: not installed */
        int policy, transcript, events, environment, scrub, token, own;
} Parts;

static void parts_done(Parts *p) {
        free(p->home);
        free(p->broker_socket);
        free(p->shim_socket);
        free(p->connect);
        safe_close(p->policy);
        safe_close(p->transcript);
        safe_close(p->events);
        safe_close(p->environment);
        safe_close(p->scrub);
        safe_close(p->token);
        safe_close(p->own);
}

static int make_directories(Session *s, const Identity *payload, Parts *p, Fault *f) {
        const Paths *paths = s->manager->paths;

        p->own = mode_open_own(s->manager->mode, paths->state_fd, s->record->id, payload);
        _cleanup_close_ int state = p->own < 0 ? p->own : mode_open_state(s->manager->mode, p->own, payload);
        if (state < 0)
                return fault_set(f, ERROR_STORAGE, "the directories of session %s cannot be made: %s", s->record->id, strerror(-state));
        if (asprintf(&p->home, "%s/%s/state/home", paths->state, s->record->id) < 0)
                p->home = NULL;
        return p->home && paths_session_socket(paths, s->record->id, &p->broker_socket) >= 0 ? 0 : fault_set(f, ERROR_SETUP, "out of memory");
}

/* Written anew under another name and put in its place: a session that ran before may hold the old one. */
static int write_policy(const Run *run, Parts *p, Fault *f) {
        const Session *s = run->session;
        _cleanup_free_ char *project = NULL, *text = NULL, *problem = NULL;

        _cleanup_strv_free_ char **hidden = NULL;

        int r = path_of_fd(s->project, &project);
        if (r >= 0)
                r = session_hidden_places(s->manager, run->config, &hidden);
        if (r >= 0)
                r = policy_format(&(PolicyInput){.session = s->record->id, .project = project, .connect = p->connect, .hidden = hidden,
                                   .open = run->network == SESSION_NETWORK_OPEN, .sandbox = &run->config->sandbox}, &text, &problem);
        if (r == -EBADMSG)
                return fault_set(f, ERROR_SETUP, "session %s: %s", s->record->id, problem);
        if (r >= 0)
                r = record_place_file(p->own, POLICY_NAME, text, strlen(text));
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "the policy of session %s cannot be written: %s", s->record->id, strerror(-r));
        p->policy = openat(p->own, POLICY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (p->policy < 0 || fchmod(p->policy, 0640) < 0)
                return fault_set(f, ERROR_STORAGE, "the policy of session %s cannot be opened: %s", s->record->id, strerror(errno));
        return 0;
}

static int seal_secrets(Run *run, Parts *p, Fault *f) {
        Session *s = run->session;
        const Credentials *c = run->credentials;
        char **list = NULL;

        int r = environment_build(&(EnvironmentInput){
                .config = run->config,
                .credentials = c,
                .port = run->port,
                .env = s->record->env,
                .provider = s->record->provider ?: run->config->agent.provider,
                .connect = p->connect,
                .interactive = s->record->interactive,
        }, &list);
        if (r >= 0)
                r = environment_seal(list, &p->environment);
        environment_free(list);
        if (r >= 0)
                r = scrub_seal(c, &p->scrub);
        if (r >= 0)
                r = p->token = memfd_new_sealed("errand-token", secret_data(c->token), secret_size(c->token));
        return r < 0 ? fault_set(f, ERROR_SETUP, "the environment of session %s cannot be made: %s", s->record->id, strerror(-r)) : 0;
}

static int on_events_changed(_unused_ sd_event_source *source, _unused_ const struct inotify_event *event, void *userdata) {
        run_read_events(userdata);
        return 0;
}

int run_watch_events(Run *run) {
        _cleanup_close_ int dir = session_open_dir(run->session);

        run->events = dir < 0 ? dir : record_open_read(dir, "events");
        return run->events < 0 ? run->events
                               : events_watch(run->session->manager->event, run->events, on_events_changed, run, &run->events_watch);
}

/* Followed from the end of what is there: an earlier run's lines are not this one's. */
static int open_files(Run *run, Parts *p, Fault *f) {
        Session *s = run->session;
        struct stat st;

        _cleanup_close_ int dir = session_open_dir(s);
        p->transcript = dir < 0 ? dir : record_open_append(dir, "transcript");
        p->events = dir < 0 ? dir : record_open_append(dir, "events");
        int r = MIN(p->transcript, p->events);
        if (r >= 0 && fstat(p->events, &st) < 0)
                r = -errno;
        if (r >= 0) {
                s->record->events_length = (uint64_t) st.st_size;
                r = run_watch_events(run);
        }
        return r < 0 ? fault_set(f, ERROR_STORAGE, "the files of session %s cannot be opened: %s", s->record->id, strerror(-r)) : 0;
}

static void on_started(Run *run, const SessionEvent *e) {
        Session *s = run->session;

        if (run->started || run->phase == RUN_ENDS || session_state(s) != SESSION_STARTING)
                return;
        run->started = true;
        run->deadline = sd_event_source_disable_unref(run->deadline);
        s->record->started = e->time ?: now_realtime();
        (void) session_set_state(s, SESSION_RUNNING);
        if (idle_watch_new(run, &run->idle) < 0)
                log_session_warning(s->record->id, "it is not stopped when nothing happens in it");
}

static void on_exited(Run *run, const SessionEvent *e) {
        if (run->exited)
                return;
        run->exited = true;
        run->exit_time = e->time;
        run->exit_reason = strdup(e->reason);
        run->exit_status = e->status;
        run->exit_text = e->text ? strdup(e->text) : NULL;
}

static void on_line(const SessionEvent *e, void *userdata) {
        if (e->kind == SESSION_EVENT_STARTED)
                on_started(userdata, e);
        else if (e->kind == SESSION_EVENT_EXITED)
                on_exited(userdata, e);
}

/* Without a word to anybody else: what follows from the lines is the caller's. */
void run_take_lines(Run *run) {
        Session *s = run->session;
        unsigned damaged = 0;

        if (run->events < 0 || !run->events_watch)
                return;
        uint64_t before = s->record->events_length;
        int r = events_read(run->events, &s->record->events_length, on_line, run, &damaged);
        run->events_taken += s->record->events_length - before;
        if (r >= 0 && run->events_taken >= EVENTS_MAX)
                r = -E2BIG;
        if (r < 0) {
                run->events_watch = sd_event_source_disable_unref(run->events_watch);
                session_notice(s, "tampering", "the events of the session %s; nothing more is taken from them",
                               r == -ESTALE ? "were made shorter" : r == -E2BIG ? "are more than a shim writes" : "cannot be read");
                return;
        }
        run->events_damaged += damaged;
        if (run->events_damaged >= MAX(2 * run->events_damaged_told, UINT64_C(1))) { /* again when they are twice as many: whoever floods does not fill the log */
                run->events_damaged_told = run->events_damaged;
                log_session_warning(s->record->id, "%llu lines of its events were not understood so far", (unsigned long long) run->events_damaged);
        }
}

void run_read_events(Run *run) {
        bool before = run->started;

        /* A shim may be faster than its launcher's answer, and can be reached only then: who was told that the session runs would attach in vain. */
        if (run->shim_state == SHIM_ASKED)
                return;
        run_take_lines(run);
        if (run->started && !before)
                run_answer(run, true, NULL);
        if (run->exited || run->shim_state == SHIM_GONE)
                run_end(run);
}

static void watch_shim(Run *run, uint64_t pid) {
        int pidfd = pidfd_open((pid_t) pid, 0), r = pidfd < 0 ? -errno : run_watch_shim(run, pidfd);

        if (r < 0) {
                run->shim_end = sd_event_source_disable_unref(run->shim_end);
                run->shim_pidfd = safe_close(run->shim_pidfd);
                run->shim_state = SHIM_GONE; /* it is gone already: its last line says how */
                return;
        }
        run->shim_pid = (pid_t) pid;
        run_connect_shim(run);
}

/* A launcher that died may have started the shim before: it is not to go on without anybody who knows of it. */
static void stop_unknown_shim(Run *run) {
        _cleanup_(shim_client_freep) ShimClient *shim = NULL;
        _cleanup_close_ int directory = -EBADF;
        _cleanup_free_ char *path = NULL;
        Session *s = run->session;
        Identity payload;
        Fault f = {};

        if (session_prepare_identity(s, &payload, &f) >= 0 && manager_shim_directory(s->manager, &payload, &directory, &path) >= 0 &&
            shim_client_new(s->manager->event, directory, s->record->id, payload.uid, NULL, NULL, &shim) >= 0)
                (void) shim_client_stop(shim, 0, NULL, NULL, NULL);
        fault_done(&f);
}

/* Which scope it is in, as its launcher made it. Written with the next state. */
static void take_scope(Run *run, Message *m) {
        SessionRecord *record = run->session->record;
        const char *unit;

        if (json_get_string(message_object(m), "scope", &unit) < 0)
                return;
        free(record->scope_unit);
        record->scope_unit = strdup(unit);
}

static void on_launched(Message *m, const char *problem, void *userdata) {
        Run *run = userdata;
        uint64_t pid = 0;

        if (!problem && (!streq(message_type(m), "launched") || json_get_u64(message_object(m), "pid", INT32_MAX, &pid) < 0 || pid == 0))
                problem = "its answer was not understood";
        if (problem) {
                run->shim_state = SHIM_NONE;
                if (!m) {
                        stop_unknown_shim(run);
                        run->session->undone = true; /* a launcher that lives may have one yet */
                }
                run_take_lines(run); /* a shim that got so far says it better */
                run_fail(run, ERROR_SETUP, "errand-launch: %s", problem);
                return;
        }
        run->shim_state = SHIM_RUNS;
        take_scope(run, m);
        disk_watch_begin(run->disk); /* bailey is on its way, and the command some milliseconds off */
        watch_shim(run, pid);
        if (run->phase == RUN_ENDS)
                run_end(run);
        else
                run_read_events(run);
}

static bool hides_address(const Run *run) {
        return run->network == SESSION_NETWORK_OPEN && run->config->sandbox.hide_host_address;
}

/* Every gap that the report names is accepted; one that turns up later is not, but for a private network that cannot be had, which does not keep
 * a session from starting. */
static int accept_gaps(const Run *run, char ***ret) {
        const Manager *m = run->session->manager;
        static const char *const private[] = {"proxy-net", "loopback-rule"};

        if (run->config->sandbox.require_full_enforcement)
                return 0;
        int r = strv_extend_list(ret, m->probed_gaps);
        if (r >= 0)
                r = strv_extend_list(ret, m->network_gaps);
        for (size_t i = 0; i < ELEMENTSOF(private) && hides_address(run) && r >= 0; i++)
                if (!strv_contains(*ret, private[i]))
                        r = strv_extend(ret, private[i]);
        return r;
}

/* Where scopes cannot be made, the report says so, and a configuration that wants everything has refused. */
bool run_plan_scope(const Manager *m, const Config *config, const char *id, char unit[static 64], LaunchScope *ret) {
        const ConfigSandbox *c = &config->sandbox;

        (void) snprintf(unit, 64, "errand-session-%s.scope", id);
        *ret = (LaunchScope){
                .unit = unit,
                .memory_max = c->memory,
                .tasks_max = c->pids,
                .cpu_quota_per_sec = c->cpus * USEC_PER_SEC / CONFIG_CPUS_SCALE,
        };
        return m->mode->units && m->scopes;
}

static int send_launch(Run *run, LaunchClient *launcher, const Parts *p, Fault *f) {
        Session *s = run->session;
        _cleanup_strv_free_ char **gaps = NULL;
        LaunchScope scope;
        char unit[64];
        const LaunchConversation conversation = {
                .protocol = s->record->protocol,
                .startup = run->config->timeouts.startup,
                .question = run->config->timeouts.question,
                .abort = run->config->timeouts.abort,
        };

        if (accept_gaps(run, &gaps) < 0)
                return fault_set(f, ERROR_SETUP, "out of memory");
        bool scoped = run_plan_scope(s->manager, run->config, s->record->id, unit, &scope);
        return launch_client_launch(launcher, &(Launch){
                .session = s->record->id,
                .command = s->record->command,
                .interactive = s->record->interactive,
                .rows = s->rows,
                .columns = s->columns,
                .home = p->home,
                .broker_socket = run->port > 0 ? p->broker_socket : NULL,
                .port = run->port,
                .strict = true,
                .accept_gaps = gaps,
                .proxy_net = hides_address(run),
                .grace = run->config->sandbox.grace_period,
                .file_max = run->config->sandbox.file_max,
                .shim_socket = p->shim_socket,
                .scope = scoped ? &scope : NULL,
                .conversation = s->record->protocol ? &conversation : NULL,
                .project = s->project,
                .policy = p->policy,
                .transcript = p->transcript,
                .events = p->events,
                .environment = p->environment,
                .scrub = p->scrub,
                .token = p->token,
                .stdio = {s->stdio[0], s->stdio[1], s->stdio[2]},
        }, on_launched, run, f);
}

int run_launch(Run *run, const Identity *payload, Fault *f) {
        _cleanup_(parts_done) Parts p = {.policy = -EBADF, .transcript = -EBADF, .events = -EBADF, .environment = -EBADF, .scrub = -EBADF, .token = -EBADF, .own = -EBADF};
        Session *s = run->session;
        LaunchClient *launcher;

        _cleanup_close_ int directory = -EBADF;
        _cleanup_free_ char *path = NULL;
        int r = manager_launcher(s->manager, payload, &launcher, f);
        if (r < 0)
                return r;
        r = manager_shim_directory(s->manager, payload, &directory, &path);
        if (r < 0 || asprintf(&p.shim_socket, "%s/%s", path, s->record->id) < 0) {
                p.shim_socket = NULL;
                return fault_set(f, ERROR_STORAGE, "the directory of shims cannot be opened: %s", strerror(r < 0 ? -r : ENOMEM));
        }
        r = connect_place(s->manager->paths, &p.connect);
        if (r < 0)
                log_warning_errno(r, "errand-connect is not there, so ssh finds no way out of session %s: %m", s->record->id);
        r = make_directories(s, payload, &p, f);
        if (r >= 0)
                r = write_policy(run, &p, f);
        if (r >= 0)
                r = seal_secrets(run, &p, f);
        if (r >= 0)
                r = open_files(run, &p, f);
        if (s->undone) { /* before this launch, so that it is not stopped for it */
                s->undone = false;
                (void) launch_client_stop(launcher, s->record->id);
        }
        int q = r < 0 ? 0 : disk_watch_new(run, &run->disk);
        if (q < 0)
                log_session_warning_errno(q, s->record->id, "its disk use is not measured: %m");
        if (r >= 0)
                r = send_launch(run, launcher, &p, f);
        if (r < 0)
                return r;
        run->shim_state = SHIM_ASKED;
        if (run->port == 0) /* no broker needs them */
                run->credentials = credentials_free(run->credentials);
        for (size_t i = 0; i < ELEMENTSOF(s->stdio); i++)
                s->stdio[i] = safe_close(s->stdio[i]);
        return 0;
}
