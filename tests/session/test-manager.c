/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a manager has of all its sessions: what it finds when it begins, where they may be, and how many. */

#include "manager-fixture.h"

static bool has_output(Session *s) {
        _cleanup_free_ char *text = transcript(s);

        return *text;
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
        setup();
        RUN(test_restart, "C200: what a killed errandd left is lost, told, and can be started again");
        RUN(test_second, "a second errandd on a state directory is refused");
        RUN(test_places, "C109: a project that holds errand's own state is refused");
        RUN(test_many, "ten sessions at once");
        RUN(test_share, "C204: one account has half of the sessions that may run, and no more");
        return TEST_END();
}
