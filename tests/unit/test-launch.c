/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "launch/request.h"
#include "launch/usage.h"
#include "test.h"

#define MEMBERS                                                                                                          \
        "\"session\":\"s1\",\"backend\":\"bailey\",\"command\":[\"sh\",\"-c\",\"exit 3\"],\"home\":\"/h\",\"strict\":true," \
        "\"acceptGaps\":[\"sysfs\"],\"graceMs\":10000,\"shimSocket\":\"/s/s1\""
#define FDS "\"project\",\"policy\",\"transcript\",\"events\",\"environment\",\"scrub\""

static int append_file(void) {
        char path[64];

        _cleanup_close_ int fd = memfd_create("file", MFD_CLOEXEC);
        CHECK(fd >= 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

static int sealed(void) {
        return memfd_new_sealed("sealed", "x", 1);
}

/* The message of those members, with the descriptors that every launch has and, at their end, `more`. */
static int parse(const char *members, const char *fds, const int *more, size_t n_more, LaunchPlan **ret, char **ret_problem) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *text = NULL;
        int all[MESSAGE_FDS_MAX] = {open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), open("/proc/self/exe", O_RDONLY | O_CLOEXEC), append_file(),
                                    append_file(), sealed(), sealed()};

        for (size_t i = 0; i < 6; i++)
                CHECK(all[i] >= 0);
        for (size_t i = 0; i < n_more; i++)
                all[6 + i] = more[i];
        CHECK(asprintf(&text, "{\"v\":1,\"type\":\"launch\",\"serial\":1,%s,\"fds\":[%s]}", members, fds) > 0);
        CHECK_INT(message_parse(text, strlen(text), all, 6 + n_more, &m, ret_problem), 0);
        return launch_plan_parse(m, ret, ret_problem);
}

static void test_whole(void) {
        _cleanup_(launch_plan_freep) LaunchPlan *p = NULL;
        _cleanup_free_ char *problem = NULL;
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        CHECK_INT(parse(MEMBERS ",\"interactive\":true,\"rows\":24,\"columns\":80,\"brokerSocket\":\"/b\",\"listen\":\"127.0.0.1:4321\"",
                        FDS ",\"token\",\"terminal\"", (const int[]){sealed(), pair[0]}, 2, &p, &problem), 0);
        CHECK_STR(p->session, "s1");
        CHECK_INT(strv_length(p->command), 3);
        CHECK_STR(p->command[2], "exit 3");
        CHECK(p->interactive && p->strict);
        CHECK_INT(p->rows, 24);
        CHECK_INT(p->columns, 80);
        CHECK_STR(p->home, "/h");
        CHECK_STR(p->socket, "/s/s1");
        CHECK_STR(p->broker_socket, "/b");
        CHECK_STR(p->listen, "127.0.0.1:4321");
        CHECK_STR(p->accept_gaps[0], "sysfs");
        CHECK_INT(p->grace_ms, 10000);
        for (LaunchFd i = 0; i < _LAUNCH_FD_MAX; i++)
                CHECK((p->fds[i] >= 0) == (i <= LAUNCH_FD_TOKEN || i == LAUNCH_FD_TERMINAL));
        close(pair[1]);
}

static void test_least(void) {
        _cleanup_(launch_plan_freep) LaunchPlan *p = NULL;
        _cleanup_free_ char *problem = NULL;

        CHECK_INT(parse(MEMBERS ",\"interactive\":false", FDS, NULL, 0, &p, &problem), 0);
        CHECK(!p->broker_socket && !p->listen && !p->interactive && p->rows == 0);
        CHECK_INT(p->fds[LAUNCH_FD_STDIN], -EBADF);
}

static void test_refused(void) {
        static const struct {
                const char *members, *problem;
        } table[] = {
                {MEMBERS, "\"interactive\" is not true or false"},
                {MEMBERS ",\"interactive\":0", "\"interactive\" is not true or false"},
                {MEMBERS ",\"interactive\":false,\"sessions\":1", "\"sessions\" is no member of a launch"},
                {MEMBERS ",\"interactive\":false,\"a\\nb\":1", "\"a\\nb\" is no member of a launch"},
                {MEMBERS ",\"interactive\":false,\"rows\":65536", "\"rows\" is not a number from 0 to 65535"},
                {MEMBERS ",\"interactive\":false,\"rows\":1.5", "\"rows\" is not a number from 0 to 65535"},
                {MEMBERS ",\"interactive\":false,\"brokerSocket\":\"b\",\"listen\":\"127.0.0.1:1\"", "\"brokerSocket\" is not an absolute path"},
                {MEMBERS ",\"interactive\":false,\"brokerSocket\":\"/b\",\"listen\":\"127.0.0.1:0\"", "\"listen\" is not 127.0.0.1:PORT"},
                {MEMBERS ",\"interactive\":false,\"brokerSocket\":\"/b\",\"listen\":\"192.0.2.1:80\"", "\"listen\" is not 127.0.0.1:PORT"},
                {MEMBERS ",\"interactive\":false,\"brokerSocket\":\"/b\"", "\"brokerSocket\" and \"listen\" are given together or not at all"},
                {MEMBERS ",\"interactive\":false,\"conversation\":true", "\"conversation\" is not an object of protocol, startupMs, questionMs and abortMs"},
                {MEMBERS ",\"interactive\":false,\"conversation\":{\"protocol\":\"none\"}",
                 "the \"protocol\" of \"conversation\" is not \"acp\", the only one that is known here"},
                {MEMBERS ",\"interactive\":false,\"conversation\":{\"protocol\":\"acp\",\"startupMs\":1,\"questionMs\":1,\"abortMs\":0}",
                 "\"conversation\" has a time of 0, in which no agent can answer"},
                {MEMBERS ",\"interactive\":true,\"conversation\":{\"protocol\":\"acp\",\"startupMs\":1,\"questionMs\":1,\"abortMs\":1}",
                 "\"conversation\" and \"interactive\" are two uses of one terminal or pipe"},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *problem = NULL;
                LaunchPlan *p = NULL;
                CHECK_INT(parse(table[i].members, FDS, NULL, 0, &p, &problem), -EBADMSG);
                CHECK(!p);
                CHECK_STR(problem, table[i].problem);
        }
}

static void test_conversation(void) {
        static const char members[] = MEMBERS ",\"interactive\":false,\"conversation\":{\"protocol\":\"acp\",\"startupMs\":1,\"questionMs\":2,\"abortMs\":3}";
        _cleanup_(launch_plan_freep) LaunchPlan *p = NULL;
        _cleanup_free_ char *problem = NULL;

        CHECK_INT(parse(members, FDS, NULL, 0, &p, &problem), 0);
        CHECK(p->conversation && p->startup_ms == 1 && p->question_ms == 2 && p->abort_ms == 3);
        CHECK_INT(parse(members, FDS ",\"stdin\"", (const int[]){open("/dev/null", O_RDONLY | O_CLOEXEC)}, 1, &p, &problem), -EBADMSG);
        CHECK_STR(problem, "the descriptor \"stdin\" has no place in such a launch");
}

static void test_fds_refused(void) {
        static const struct {
                const char *name, *problem;
                bool interactive;
        } table[] = {
                {"other", "there is a descriptor of a name that a launch does not know", false},
                {"token", "the descriptor \"token\" has no place in such a launch", false},
                {"terminal", "the descriptor \"terminal\" has no place in such a launch", false},
                {"stdout", "the descriptor \"stdout\" has no place in such a launch", true},
                {"terminal", "the descriptor \"terminal\" is not a unix stream socket", true},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *problem = NULL, *fds = NULL;
                LaunchPlan *p = NULL;
                int more = sealed();
                CHECK(asprintf(&fds, FDS ",\"%s\"", table[i].name) > 0);
                CHECK_INT(parse(table[i].interactive ? MEMBERS ",\"interactive\":true" : MEMBERS ",\"interactive\":false", fds, &more, 1, &p, &problem),
                          -EBADMSG);
                CHECK_STR(problem, table[i].problem);
                CHECK_INT(fcntl(more, F_GETFD), -1); /* what was refused is closed */
        }
}

static void test_ids(void) {
        static const char *const good[] = {"a", "0", "abcdefghijklmnopqrstuvwxyz01"};
        static const char *const bad[] = {"", "A", "a-b", "a b", "../x", "a/b", "-v", "a\n", "abcdefghijklmnopqrstuvwxyz012", "\xc3\xa9", "$(id)"};

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                CHECK(session_id_valid(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                CHECK(!session_id_valid(bad[i]));
}

#define SCOPE "\"unit\":\"errand-session-s1.scope\",\"description\":\"Session s1\",\"delegate\":true"

static void test_scope(void) {
        _cleanup_(launch_plan_freep) LaunchPlan *p = NULL, *q = NULL;
        _cleanup_free_ char *problem = NULL;

        CHECK_INT(parse(MEMBERS ",\"interactive\":false,\"scope\":{" SCOPE ",\"slice\":\"errand.slice\",\"memoryMax\":4294967296,\"memorySwapMax\":0,"
                        "\"tasksMax\":512,\"cpuQuotaPerSecUSec\":2000000,\"required\":[\"tasksMax\"]}", FDS, NULL, 0, &p, &problem), 0);
        CHECK_STR(p->scope->unit, "errand-session-s1.scope");
        CHECK_STR(p->scope->slice, "errand.slice");
        CHECK_STR(p->scope->description, "Session s1");
        CHECK(p->scope->delegate);
        CHECK_INT(p->scope->limits[SCOPE_MEMORY_MAX], 4294967296);
        CHECK_INT(p->scope->limits[SCOPE_MEMORY_SWAP_MAX], 0);
        CHECK_INT(p->scope->limits[SCOPE_TASKS_MAX], 512);
        CHECK_INT(p->scope->limits[SCOPE_CPU_QUOTA], 2000000);
        for (ScopeLimit i = 0; i < _SCOPE_LIMIT_MAX; i++)
                CHECK_INT(p->scope->required[i], i == SCOPE_TASKS_MAX);
        CHECK_INT(parse(MEMBERS ",\"interactive\":false,\"scope\":{" SCOPE "}", FDS, NULL, 0, &q, &problem), 0);
        CHECK(!q->scope->slice);
        for (ScopeLimit i = 0; i < _SCOPE_LIMIT_MAX; i++)
                CHECK(q->scope->limits[i] == SCOPE_NOT_LIMITED && !q->scope->required[i]);
}

static void test_scope_refused(void) {
        static const struct {
                const char *scope, *problem;
        } table[] = {
                {"1", "\"scope\" is not an object"},
                {"{}", "\"unit\" of \"scope\" is not \"errand-session-s1.scope\""},
                {"{\"unit\":\"errand-session-s2.scope\"}", "\"unit\" of \"scope\" is not \"errand-session-s1.scope\""},
                {"{\"unit\":\"errand-session-s1.scope\"}", "\"description\" of \"scope\" is not a line of at most 256 bytes"},
                {"{" SCOPE ",\"slice\":\"errand.service\"}", "\"slice\" of \"scope\" is not the name of a slice"},
                {"{" SCOPE ",\"slice\":\"../errand.slice\"}", "\"slice\" of \"scope\" is not the name of a slice"},
                {"{" SCOPE ",\"memoryMax\":0}", "\"memoryMax\" of \"scope\" is not a number from 1 on"},
                {"{" SCOPE ",\"memorySwapMax\":\"0\"}", "\"memorySwapMax\" of \"scope\" is not a number from 0 on"},
                {"{" SCOPE ",\"tasksMax\":1.5}", "\"tasksMax\" of \"scope\" is not a number from 1 on"},
                {"{" SCOPE ",\"required\":[\"tasksMax\"]}", "\"required\" of \"scope\" names what is no limit that it has, or one twice"},
                {"{" SCOPE ",\"tasksMax\":1,\"required\":[\"tasksMax\",\"tasksMax\"]}", "\"required\" of \"scope\" names what is no limit that it has, or one twice"},
                {"{" SCOPE ",\"required\":1}", "\"required\" of \"scope\" is not a list of its limits"},
                {"{" SCOPE ",\"a\\nb\":1}", "\"a\\nb\" is no member of \"scope\""},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *problem = NULL, *members = NULL;
                LaunchPlan *p = NULL;
                CHECK(asprintf(&members, MEMBERS ",\"interactive\":false,\"scope\":%s", table[i].scope) > 0);
                CHECK_INT(parse(members, FDS, NULL, 0, &p, &problem), -EBADMSG);
                CHECK(!p);
                CHECK_STR(problem, table[i].problem);
        }
}

static void test_scope_session(void) {
        static const char *const bad[] = {"", "errand-session-.scope", "errand-session-a.service", "errand-session-A.scope", "xerrand-session-a.scope",
                                          "errand-session-a.scope.scope", "errand-session-abcdefghijklmnopqrstuvwxyz012.scope"};
        size_t size;

        const char *id = scope_unit_session("errand-session-a1.scope", &size);
        CHECK(id && size == 2 && strncmp(id, "a1", 2) == 0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                CHECK(!scope_unit_session(bad[i], &size));
}

static void test_stat(void) {
        uint64_t ticks, pages;
        pid_t pid, parent;

        CHECK_INT(usage_parse_stat("42 (a) b) S 7 42 42 0 -1 4194560 100 0 0 0 11 22 33 44 20 0 1 0 1234 5678 99 18446744073709551615 1 1", &pid, &parent,
                                   &ticks, &pages), 0);
        CHECK_INT(pid, 42);
        CHECK_INT(parent, 7);
        CHECK_INT(ticks, 110);
        CHECK_INT(pages, 99);
        CHECK_INT(usage_parse_stat("", &pid, &parent, &ticks, &pages), -EBADMSG);
        CHECK_INT(usage_parse_stat("42 (a) S 7 42", &pid, &parent, &ticks, &pages), -EBADMSG);
}

static void test_usage(void) {
        Usage usage;

        CHECK_INT(usage_read(getpid(), &usage), 0);
        CHECK_INT(usage.processes, 1);
        CHECK(usage.memory_bytes > 4096);
        CHECK_INT(usage_read(INT32_MAX, &usage), -ESRCH);
}

int main(void) {
        RUN(test_whole, "a launch with everything");
        RUN(test_least, "a launch with the least");
        RUN(test_refused, "C199: members that are missing, unknown, or of another kind");
        RUN(test_conversation, "C199: a launch with a conversation, which leaves no place for files of the caller's");
        RUN(test_fds_refused, "C199: descriptors that are unknown, out of place, or of another kind, are refused and closed");
        RUN(test_ids, "C199: what a session's id may be");
        RUN(test_scope, "D003: a scope with everything, and with the least");
        RUN(test_scope_refused, "C199: a scope that is another session's, or holds what is unknown or of another kind");
        RUN(test_scope_session, "D003: whose scope a unit is");
        RUN(test_stat, "a process as /proc tells it, whatever its name");
        RUN(test_usage, "what this process uses");
        return TEST_END();
}
