/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life of sessions, below the bus: a manager with its real launcher, shims, brokers and bailey. ERRAND_LIBEXEC names the programs. */

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/config-load.h"
#include "errandd/paths.h"
#include "errandd/session.h"
#include "test.h"

#define PATIENCE_USEC (30 * USEC_PER_SEC) /* a bound for what hangs */

typedef struct World {
        char base[64], project[96], state[96], config[96];
        sd_event *event;
        Paths *paths;
        Manager *manager;
        char *exit_reason;
        int exit_status;
        unsigned n_exits;
        SessionState told; /* by the observer: what a client knows that asks for nothing */
        char notices[4096];
} World;

static World w;
static const Caller owner = {.operator = true};

typedef struct Answer {
        bool come;
        ErrorCode code;
        char *text;
        int fd;
        SessionState told; /* before it */
} Answer;

static void on_done(_unused_ Session *s, const Fault *fault, int fd, void *userdata) {
        Answer *a = userdata;

        a->come = true;
        a->code = fault ? fault->code : ERROR_NONE;
        a->text = fault && fault->text ? strdup(fault->text) : NULL;
        a->fd = fd;
        a->told = w.told;
}

static void on_changed(Session *s, _unused_ void *userdata) {
        w.told = session_state(s);
}

static void on_exited(Session *s, const char *reason, int status, _unused_ void *userdata) {
        free(w.exit_reason);
        w.exit_reason = strdup(reason);
        w.exit_status = status;
        CHECK_INT(w.told, session_state(s)); /* before this */
        w.n_exits++;
}

static void on_notice(_unused_ Session *s, const char *kind, const char *text, _unused_ void *userdata) {
        size_t n = strlen(w.notices);
        (void) snprintf(w.notices + n, sizeof(w.notices) - n, "%s: %s\n", kind, text);
}

static void check_fault(int r, Fault *f) {
        if (r < 0)
                test_fail(__FILE__, __LINE__, "%s: %s", strerror(-r), f->text ?: "no sentence");
}

static void write_file(const char *path, const char *text, mode_t mode) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
        CHECK(fd >= 0);
        CHECK_INT(write_all(fd, text, strlen(text)), 0);
        CHECK_INT(fchmod(fd, mode), 0);
}

static void open_manager(void) {
        Config *config = NULL;
        Fault f = {};

        CHECK(sd_event_new(&w.event) >= 0);
        check_fault(paths_embedded(w.state, w.config, &w.paths, &f), &f);
        check_fault(paths_open(w.paths, &f), &f);
        check_fault(config_load(w.paths, NULL, &config, &f), &f);
        check_fault(manager_new(w.event, w.paths, NULL, config, &w.manager, &f), &f);
        manager_observe(w.manager, &(Observer){.session_changed = on_changed, .session_exited = on_exited, .session_notice = on_notice});
        w.n_exits = 0;
        w.notices[0] = 0;
}

static void close_manager(void) {
        w.manager = manager_free(w.manager);
        w.event = sd_event_unref(w.event);
        w.paths = paths_free(w.paths);
}

static void begin(const char *config) {
        w = (World){};
        strcpy(w.base, "/tmp/errand-manager-XXXXXX");
        CHECK(mkdtemp(w.base));
        CHECK_INT(chmod(w.base, 0755), 0);
        (void) snprintf(w.project, sizeof(w.project), "%s/project", w.base);
        (void) snprintf(w.state, sizeof(w.state), "%s/state", w.base);
        (void) snprintf(w.config, sizeof(w.config), "%s/errand.json", w.base);
        CHECK_INT(mkdir(w.project, 0755), 0);
        if (geteuid() == 0)
                CHECK_INT(chown(w.project, 65534, 65534), 0);
        write_file(w.config, config, 0600);
        open_manager();
}

static void end(void) {
        close_manager();
        free(w.exit_reason);
        pid_t pid = fork();
        if (pid == 0) {
                execl("/bin/rm", "rm", "-rf", "--", w.base, NULL);
                _exit(1);
        }
        (void) waitpid(pid, NULL, 0);
}

static bool turn(usec_t until) {
        usec_t now = now_monotonic();
        return now < until && sd_event_run(w.event, until - now) >= 0;
}

#define AWAIT(condition)                                        \
        do {                                                    \
                usec_t _until = now_monotonic() + PATIENCE_USEC; \
                while (!(condition))                            \
                        if (!turn(_until))                      \
                                test_fail(__FILE__, __LINE__, "waited in vain for %s", #condition); \
        } while (0)

static Session *create(const char *id, const char *script, bool interactive) {
        char *command[] = {(char *) "/bin/sh", (char *) "-c", (char *) script, NULL};
        SessionOptions o = {.id = id, .project = w.project, .project_fd = -EBADF, .command = command, .interactive = interactive,
                            .rows = 24, .columns = 80, .stdio = {-EBADF, -EBADF, -EBADF}};
        Session *s = NULL;
        Fault f = {};

        check_fault(manager_create_session(w.manager, &(Caller){.uid = geteuid(), .operator = true}, &o, &s, &f), &f);
        return s;
}

static void start(Session *s) {
        Answer a = {};
        Fault f = {};

        check_fault(session_start(s, on_done, &a, &f), &f);
        AWAIT(a.come);
        if (a.code != ERROR_NONE)
                test_fail(__FILE__, __LINE__, "start: %s", a.text);
        CHECK_INT(a.told, SESSION_RUNNING);
}

static char *transcript(Session *s) {
        char *text;
        size_t size;
        uint64_t next;
        Fault f = {};

        check_fault(session_read_transcript(s, 0, 1 << 20, &text, &size, &next, &f), &f);
        return text;
}

static bool has_output(Session *s) {
        _cleanup_free_ char *text = transcript(s);

        (void) turn(now_monotonic() + 10 * USEC_PER_MSEC); /* nobody tells of it */
        return *text;
}

static void contains(const char *text, const char *part) {
        if (!text || !strstr(text, part))
                test_fail(__FILE__, __LINE__, "lacks \"%s\": \"%s\"", part, text ?: "");
}

static void lacks(const char *text, const char *part) {
        if (text && strstr(text, part))
                test_fail(__FILE__, __LINE__, "holds \"%s\": \"%s\"", part, text);
}

static const char provider_config[] =
        "{\"agent\":{\"providers\":{\"anthropic\":{\"baseUrl\":\"https://192.0.2.1\",\"credential\":\"sk-real-0123456789abcdef\"}}},"
        "\"sandbox\":{\"gracePeriodMs\":500,\"egress\":{\"allow\":[\"api.example.com\"]}}}";

static void test_runs(void) {
        begin(provider_config);
        Session *s = create("one", "env; echo written > made; exit 7", false);
        CHECK_INT(session_state(s), SESSION_CREATED);
        start(s);
        AWAIT(w.n_exits == 1);
        CHECK_INT(session_state(s), SESSION_STOPPED);
        CHECK_STR(w.exit_reason, "exited");
        CHECK_INT(w.exit_status, 7);
        CHECK_INT(session_record(s)->exit_status, 7);
        CHECK(session_record(s)->started > 0 && session_record(s)->ended >= session_record(s)->started);
        _cleanup_free_ char *text = transcript(s);
        contains(text, "http_proxy=http://errand:");
        contains(text, "ALL_PROXY=http://errand:");
        contains(text, "no_proxy=127.0.0.1,localhost,::1");
        contains(text, "ANTHROPIC_API_KEY=");
        contains(text, "ERRAND_PROVIDER_ANTHROPIC_URL=http://127.0.0.1:");
        contains(text, "ANTHROPIC_BASE_URL=http://127.0.0.1:");
        contains(text, "BAILEY_SANDBOX_NET=broker");
        lacks(text, "sk-real-");
        lacks(text, "errand-session-"); /* minted, and scrubbed from the transcript */
        char path[128];
        (void) snprintf(path, sizeof(path), "%s/made", w.project);
        CHECK_INT(access(path, F_OK), 0);
        end();
}

static bool said(Session *s, const char *part) {
        _cleanup_free_ char *text = transcript(s);
        return text && strstr(text, part);
}

static void test_stops(void) {
        begin(provider_config);
        Session *s = create("two", "trap '' TERM; echo up; while :; do sleep 0.1; done", false);
        Answer a = {};
        Fault f = {};

        start(s);
        CHECK_INT(session_state(s), SESSION_RUNNING);
        AWAIT(said(s, "up")); /* it heeds no SIGTERM from then on, and not before */
        check_fault(session_stop(s, on_done, &a, &f), &f);
        CHECK_INT(session_state(s), SESSION_STOPPING);
        AWAIT(a.come);
        CHECK_INT(a.code, ERROR_NONE);
        CHECK_INT(a.told, SESSION_STOPPED);
        CHECK_INT(session_state(s), SESSION_STOPPED);
        CHECK_INT(w.exit_status, 137);
        CHECK_STR(w.exit_reason, "killed");
        CHECK_INT(session_stop(s, on_done, &a, &f), -EBUSY);
        fault_done(&f);

        /* Resume: minted anew, runs again. */
        start(s);
        a = (Answer){};
        check_fault(session_stop(s, on_done, &a, &f), &f);
        AWAIT(a.come);

        a = (Answer){};
        check_fault(session_collect(s, on_done, &a, &f), &f);
        AWAIT(a.come);
        if (a.code != ERROR_NONE)
                test_fail(__FILE__, __LINE__, "collect: %s", a.text);
        CHECK(!manager_find(w.manager, "two"));
        char path[128];
        (void) snprintf(path, sizeof(path), "%s/two", w.state);
        CHECK(access(path, F_OK) < 0);
        (void) snprintf(path, sizeof(path), "%s/.records/two", w.state);
        CHECK(access(path, F_OK) < 0);
        end();
}

static void test_set_up_fails(void) {
        begin("{\"sandbox\":{\"policyExtra\":{\"write\":[\"/proc\"]}}}");
        Session *s = create("three", "true", false);
        Answer a = {};
        Fault f = {};

        check_fault(session_start(s, on_done, &a, &f), &f);
        AWAIT(a.come);
        CHECK_INT(a.code, ERROR_SETUP);
        CHECK_INT(session_state(s), SESSION_FAILED);
        CHECK_STR(session_record(s)->exit_reason, "setup");
        CHECK_INT(session_record(s)->exit_status, 125);
        printf("# %s\n", a.text);
        contains(a.text, "/proc");
        free(a.text);
        end();
}

static void test_not_found(void) {
        begin("{}");
        char *command[] = {(char *) "errand-no-such-command", NULL};
        SessionOptions o = {.id = "none", .project = w.project, .project_fd = -EBADF, .command = command, .stdio = {-EBADF, -EBADF, -EBADF}};
        Session *s = NULL;
        Answer a = {};
        Fault f = {};

        check_fault(manager_create_session(w.manager, &owner, &o, &s, &f), &f);
        check_fault(session_start(s, on_done, &a, &f), &f);
        AWAIT(w.n_exits == 1);
        printf("# %s: %s\n", session_state_to_string(session_state(s)), a.text ?: "");
        CHECK_INT(session_record(s)->exit_status, 127);
        free(a.text);
        end();
}

typedef struct Given {
        bool come;
        uint32_t number;
        char host[HOST_TEXT_MAX + 1];
} Given;

static void on_given(_unused_ Session *s, const Grant *g, const Fault *fault, void *userdata) {
        Given *given = userdata;

        CHECK(g && !fault && !given->come);
        given->come = true;
        given->number = g->number;
        strcpy(given->host, g->host);
}

static void test_grants(void) {
        begin(provider_config);
        Session *s = create("four", "sleep 1000", false);
        Given g = {}, g2 = {};
        Answer revoked = {};
        Fault f = {};

        CHECK_INT(session_grant(s, &owner, "other.example.com", "10m", on_given, &g, &f), -EBUSY);
        fault_done(&f);
        start(s);
        check_fault(session_grant(s, &owner, "Other.Example.com", "10m", on_given, &g, &f), &f);
        CHECK(!g.come); /* it is on disk first */
        AWAIT(g.come);
        CHECK_STR(g.host, "other.example.com");
        uint32_t number = g.number;
        CHECK_INT(session_grant(s, &owner, "http://x/", "10m", on_given, &g, &f), -EINVAL);
        fault_done(&f);
        CHECK_INT(session_grant(s, &owner, "x.example", "soon", on_given, &g, &f), -EINVAL);
        fault_done(&f);
        check_fault(session_grant(s, &owner, "short.example.com", "1s", on_given, &g2, &f), &f);
        AWAIT(g2.come);
        CHECK_INT(session_grants(s)->n_grants, 2);
        AWAIT(session_grants(s)->n_grants == 1);
        check_fault(session_revoke(s, number, on_done, &revoked, &f), &f);
        CHECK_INT(session_grants(s)->n_grants, 0);
        AWAIT(revoked.come);
        CHECK_INT(session_revoke(s, number, NULL, NULL, &f), -ENOENT);
        fault_done(&f);
        Answer a = {};
        check_fault(session_stop(s, on_done, &a, &f), &f);
        AWAIT(a.come);
        end();
}

static void test_terminal(void) {
        begin("{}");
        Session *s = create("five", "stty size; read line; echo got $line; tty", true);
        Answer a = {};
        Fault f = {};
        char text[4096] = "";
        size_t n = 0;

        start(s);
        check_fault(session_attach(s, on_done, &a, &f), &f);
        AWAIT(a.come);
        if (a.code != ERROR_NONE)
                test_fail(__FILE__, __LINE__, "attach: %s", a.text);
        CHECK_INT(write(a.fd, "hello\n", 6), 6);
        CHECK_INT(fd_nonblock(a.fd, true), 0);
        AWAIT(w.n_exits == 1);
        for (ssize_t got; n < sizeof(text) - 1 && (got = read(a.fd, text + n, sizeof(text) - 1 - n)) > 0;)
                n += (size_t) got;
        contains(text, "24 80");
        contains(text, "got hello");
        contains(text, "/dev/pts/");
        close(a.fd);
        end();
}

static pid_t find_child(const char *name) { /* the newest: one of an earlier case may not have been waited for */
        char line[256];
        pid_t found = 0;

        (void) snprintf(line, sizeof(line), "pgrep -n -P %d -x %s", (int) getpid(), name);
        FILE *p = popen(line, "re");
        if (p && fgets(line, sizeof(line), p))
                found = (pid_t) strtol(line, NULL, 10);
        if (p)
                (void) pclose(p);
        return found;
}

static void test_deaths(void) {
        begin(provider_config);
        Session *s = create("six", "sleep 1000", false);
        Answer a = {};
        Fault f = {};

        start(s);
        pid_t launcher = find_child("errand-launch"), broker = find_child("errand-broker");
        CHECK(launcher > 0 && broker > 0);

        CHECK_INT(kill(launcher, SIGKILL), 0);
        AWAIT(find_child("errand-launch") > 0 && find_child("errand-launch") != launcher);
        CHECK_INT(session_state(s), SESSION_RUNNING);

        CHECK_INT(kill(broker, SIGKILL), 0);
        AWAIT(strstr(w.notices, "broker: "));
        contains(w.notices, "no way out any more");
        CHECK_INT(session_state(s), SESSION_RUNNING);
        CHECK_INT(session_grant(s, &owner, "x.example", "once", NULL, NULL, &f), -EBUSY);
        fault_done(&f);

        check_fault(session_stop(s, on_done, &a, &f), &f);
        AWAIT(a.come);
        CHECK_INT(session_state(s), SESSION_STOPPED);

        /* The next run works, with a new launcher. */
        start(s);
        pid_t shim = 0;
        char line[160];
        (void) snprintf(line, sizeof(line), "pgrep -n -x -f 'errand-shim .*%s.*'", w.state);
        FILE *p = popen(line, "re");
        CHECK(p && fgets(line, sizeof(line), p));
        shim = (pid_t) strtol(line, NULL, 10);
        (void) pclose(p);
        CHECK(shim > 0);
        w.n_exits = 0;
        CHECK_INT(kill(shim, SIGKILL), 0);
        AWAIT(w.n_exits == 1);
        CHECK_INT(session_state(s), SESSION_FAILED);
        CHECK_STR(w.exit_reason, "lost");
        end();
}

/* What a dead errandd leaves: a record in a live state, whose processes went with it. */
static void test_restart(void) {
        /* Takes its whole grace period to end, and has the lock for as long as it lives. */
        static const char stubborn[] = "trap '' TERM; exec 9>>held; flock -n 9 && echo up || echo two; while :; do sleep 1000; done";
        char path[160];
        int status;

        begin(provider_config);
        close_manager();
        pid_t pid = fork();
        if (pid == 0) {
                open_manager();
                Session *first = create("seven", stubborn, false);
                start(first);
                AWAIT(has_output(first));
                (void) kill(getpid(), SIGKILL);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        open_manager();
        Session *s = manager_find(w.manager, "seven");
        CHECK(s);
        CHECK_INT(session_state(s), SESSION_FAILED);
        CHECK_STR(session_record(s)->exit_reason, "lost");
        (void) snprintf(path, sizeof(path), "%s/seven/broker/session", w.state);
        CHECK(access(path, F_OK) < 0);
        _cleanup_free_ char *text = transcript(s);
        contains(text, "up");
        /* Its shim may still be stopping what it had; then it can be started again. */
        usec_t until = now_monotonic() + PATIENCE_USEC;
        Answer a = {};
        for (;;) {
                Fault f = {};
                a = (Answer){};
                if (session_start(s, on_done, &a, &f) >= 0)
                        break;
                CHECK_INT(f.code, ERROR_WRONG_STATE);
                contains(f.text, "an earlier run of session seven is still being ended");
                fault_done(&f);
                CHECK(now_monotonic() < until);
                (void) usleep(50 * 1000);
        }
        AWAIT(a.come);
        if (a.code != ERROR_NONE)
                test_fail(__FILE__, __LINE__, "start: %s", a.text);
        /* What another one of its id has left running by then would write the end of both into its record. */
        free(text);
        for (text = transcript(s); !strstr(text, "up\nup\n") && !strstr(text, "two"); text = transcript(s)) {
                free(text);
                (void) turn(now_monotonic() + 10 * USEC_PER_MSEC);
        }
        lacks(text, "two");
        Fault f = {};
        a = (Answer){};
        check_fault(session_stop(s, on_done, &a, &f), &f);
        AWAIT(a.come);
        end();
}

static void test_second(void) {
        begin("{}");
        Paths *paths = NULL;
        Config *config = NULL;
        Manager *m = NULL;
        Fault f = {};

        check_fault(paths_embedded(w.state, w.config, &paths, &f), &f);
        check_fault(paths_open(paths, &f), &f);
        check_fault(config_load(paths, NULL, &config, &f), &f);
        CHECK_INT(manager_new(w.event, paths, NULL, config, &m, &f), -EBUSY);
        contains(f.text, "another errandd");
        fault_done(&f);
        config_free(config);
        paths_free(paths);
        end();
}

static void test_places(void) {
        begin("{}");
        char *command[] = {(char *) "true", NULL};
        SessionOptions o = {.project = w.base, .project_fd = -EBADF, .command = command, .stdio = {-EBADF, -EBADF, -EBADF}};
        Session *s = NULL;
        Fault f = {};

        if (geteuid() == 0)
                CHECK_INT(chown(w.base, 65534, 65534), 0);
        check_fault(manager_create_session(w.manager, &owner, &o, &s, &f), &f);
        CHECK_INT(session_start(s, on_done, NULL, &f), -EINVAL);
        contains(f.text, "may not reach the records");
        fault_done(&f);
        o.id = NULL;
        char nothing[96];
        (void) snprintf(nothing, sizeof(nothing), "%s/nothing", w.base);
        o.project = nothing;
        CHECK_INT(manager_create_session(w.manager, &owner, &o, &s, &f), -ENOENT);
        fault_done(&f);
        o.project = w.project;
        o.id = "../x";
        CHECK_INT(manager_create_session(w.manager, &owner, &o, &s, &f), -EINVAL);
        fault_done(&f);
        end();
}

static void test_many(void) {
        Session *s[10];
        char id[16];

        begin("{}");
        for (size_t i = 0; i < ELEMENTSOF(s); i++) {
                Fault f = {};
                (void) snprintf(id, sizeof(id), "many%zu", i);
                s[i] = create(id, "exit 3", false);
                check_fault(session_start(s[i], NULL, NULL, &f), &f);
        }
        AWAIT(w.n_exits == ELEMENTSOF(s));
        for (size_t i = 0; i < ELEMENTSOF(s); i++)
                CHECK_INT(session_record(s[i])->exit_status, 3);
        end();
}

/* Nobody's sessions but an operator's are more than half of those that may run. */
static void test_share(void) {
        const Caller plain = {.uid = geteuid()};
        Session *s[3];
        char id[16];
        Fault f = {};

        begin("{\"limits\": {\"maxLiveSessions\": 4}}");
        for (size_t i = 0; i < ELEMENTSOF(s); i++) {
                (void) snprintf(id, sizeof(id), "share%zu", i);
                s[i] = create(id, "sleep 1000", false);
                if (i < 2) {
                        check_fault(session_check_share(s[i], &plain, &f), &f);
                        start(s[i]);
                }
        }
        CHECK(session_check_share(s[2], &plain, &f) < 0);
        CHECK_INT(f.code, ERROR_LIMIT);
        CHECK(strstr(f.text, "2 sessions of uid") && strstr(f.text, "of the 4 that"));
        fault_done(&f);
        check_fault(session_check_share(s[2], &owner, &f), &f);
        check_fault(session_check_share(s[0], &plain, &f), &f); /* it runs, and is refused for that */
        end();
}

int main(void) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) unsetenv("SUDO_UID");
        log_setup("errandd", getenv("DEBUG") ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR);
        RUN(test_runs, "a session runs by launcher, shim, broker and bailey, and its record says how it ended");
        RUN(test_stops, "a session that does not heed SIGTERM is killed after its grace period; it is resumed and collected");
        RUN(test_set_up_fails, "a start that fails says why, and the session is failed");
        RUN(test_not_found, "a command that is not found has status 127");
        RUN(test_grants, "grants are given, end, and are revoked");
        RUN(test_terminal, "an interactive session has a terminal that is attached to");
        RUN(test_deaths, "C081: the deaths of launcher, broker and shim are told, and the next run works");
        RUN(test_restart, "C200: what a killed errandd left is lost, told, and can be started again");
        RUN(test_second, "a second errandd on a state directory is refused");
        RUN(test_places, "C109: a project that holds errand's own state is refused");
        RUN(test_many, "ten sessions at once");
        RUN(test_share, "C204: one account has half of the sessions that may run, and no more");
        return TEST_END();
}
