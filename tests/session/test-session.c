/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life of a session. */

#include "manager-fixture.h"

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

int main(void) {
        setup();
        RUN(test_runs, "a session runs by launcher, shim, broker and bailey, and its record says how it ended");
        RUN(test_stops, "a session that does not heed SIGTERM is killed after its grace period; it is resumed and collected");
        RUN(test_set_up_fails, "a start that fails says why, and the session is failed");
        RUN(test_not_found, "a command that is not found has status 127");
        RUN(test_grants, "grants are given, end, and are revoked");
        RUN(test_terminal, "an interactive session has a terminal that is attached to");
        RUN(test_deaths, "C081: the deaths of launcher, broker and shim are told, and the next run works");
        return TEST_END();
}
