/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A manager below the bus, with its real launcher, shims, brokers and bailey, and what it told last; one at a time. ERRAND_LIBEXEC names the programs. */

#include <fcntl.h>
#include <signal.h>
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

/* One round of the loop, soon over also where nothing happens: of a file or a process nobody tells it. False: it is past that time. */
static bool turn(usec_t until) {
        usec_t now = now_monotonic();
        return now < until && sd_event_run(w.event, MIN(until - now, 10 * USEC_PER_MSEC)) >= 0;
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

/* Signals and the log, first of all. */
static void setup(void) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) unsetenv("SUDO_UID");
        log_setup("errandd", getenv("DEBUG") ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR);
}
