/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "test.h"
#include "world.h"

#define A1 BUS_SESSION_ROOT "/a1"

static World w;
static sd_bus *client;
static Session *a1;

static void begin(void) {
        w = world_new(NULL);
        a1 = fake_session(w.manager, "a1", geteuid());
        client = world_client(&w, geteuid());
}

static void end(void) {
        sd_bus_close_unref(client);
        world_done(&w);
}

static void test_lists(void) {
        const char *id, *path, *state, *project;
        uint64_t created;
        Reply r;

        begin();
        fake_session(w.manager, "b2", 12345)->state = SESSION_STOPPED;
        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListThreads", NULL);
        CHECK_FINE(r);
        CHECK(sd_bus_message_has_signature(r.message, "a(sosst)"));
        CHECK(sd_bus_message_enter_container(r.message, 'a', "(sosst)") > 0);
        CHECK(sd_bus_message_read(r.message, "(sosst)", &id, &path, &state, &project, &created) > 0);
        CHECK_STR(id, "a1");
        CHECK_STR(path, A1);
        CHECK_STR(state, "created");
        CHECK_STR(project, "/home/somebody/\\xff project"); /* not UTF-8, shown all the same */
        CHECK_INT(created, 1700000000000000);
        CHECK(sd_bus_message_read(r.message, "(sosst)", &id, &path, &state, &project, &created) > 0);
        CHECK_STR(id, "b2");
        CHECK(sd_bus_message_at_end(r.message, false));
        reply_done(&r);

        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListSessions", NULL);
        CHECK(sd_bus_message_enter_container(r.message, 'a', "(sosst)") > 0);
        CHECK(sd_bus_message_skip(r.message, "(sosst)") > 0);
        CHECK(sd_bus_message_at_end(r.message, false)); /* b2 has ended */
        reply_done(&r);

        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession", "s", "b2");
        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "o", &path) > 0);
        CHECK_STR(path, BUS_SESSION_ROOT "/b2");
        reply_done(&r);
        end();
}

static Reply create(const char *name, const char *types, ...) {
        sd_bus_message *m = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
        va_list ap;

        CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        if (name) {
                CHECK(sd_bus_message_open_container(m, 'e', "sv") >= 0);
                CHECK(sd_bus_message_append(m, "s", name) >= 0);
                CHECK(sd_bus_message_open_container(m, 'v', types) >= 0);
                va_start(ap, types);
                CHECK(sd_bus_message_appendv(m, types, ap) >= 0);
                va_end(ap);
                CHECK(sd_bus_message_close_container(m) >= 0);
                CHECK(sd_bus_message_close_container(m) >= 0);
        }
        CHECK(sd_bus_message_close_container(m) >= 0);
        return call_send(&w, client, m);
}

static void test_create(void) {
        sd_bus_message *m;
        const char *path;
        Reply r;

        begin();
        m = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
        CHECK(sd_bus_message_append(m, "a{sv}", 8, "project", "s", "/srv/p", "id", "s", "c3", "command", "as", 2, "make", "check",
                                    "network", "s", "none", "allow", "as", 1, "API.Example.com.", "env", "a{ss}", 1, "LANG", "C",
                                    "provider", "s", "anthropic", "model", "s", "m-1") >= 0);
        r = call_send(&w, client, m);
        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "o", &path) > 0);
        CHECK_STR(path, BUS_SESSION_ROOT "/c3");
        CHECK_STR(w.manager->seen_command, "make|check|");
        CHECK_STR(w.manager->seen_allow, "api.example.com|");
        CHECK_STR(w.manager->seen_env, "LANG=C|");
        CHECK(w.manager->seen.allow_given && !w.manager->seen.interactive);
        CHECK_INT(manager_find(w.manager, "c3")->record->owner, geteuid());
        reply_done(&r);

        r = create(NULL, NULL);
        CHECK_FINE(r);
        reply_done(&r);
        end();
}

static void check_refused(Reply r, const char *text) {
        CHECK_ERROR(r, "InvalidArgument");
        if (!strstr(r.text, text))
                test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", r.text, text);
        CHECK_INT(w.manager->acts, 0);
        reply_done(&r);
}

static void test_options(void) {
        char longest[5000];

        begin();
        check_refused(create("projct", "s", "/srv/p"), "knows no option \"projct\"; did you mean \"project\"?");
        check_refused(create("privileged", "b", 1), "knows no option \"privileged\"");
        check_refused(create("", "s", "x"), "knows no option \"\"");
        check_refused(create("project", "i", 3), "type \"s\", not \"i\"");
        check_refused(create("command", "s", "make"), "type \"as\", not \"s\"");
        check_refused(create("command", "as", 0), "names no program");
        check_refused(create("command", "as", 1, ""), "names no program");
        check_refused(create("protocol", "s", "mcp"), "is neither \"none\" nor \"acp\"");
        check_refused(create("network", "s", "host"), "neither \"restricted\" nor \"none\"");
        check_refused(create("allow", "as", 1, "https://x"), "allow");
        check_refused(create("allow", "as", 2, "example.com", "a b"), "allow");
        check_refused(create("env", "a{ss}", 1, "A=B", "x"), "env");
        check_refused(create("env", "a{ss}", 1, "PATH", "/tmp"), "env");
        check_refused(create("env", "a{ss}", 2, "A", "x", "A", "y"), "given twice");
        check_refused(create("provider", "s", "../x"), "provider");
        check_refused(create("model", "s", "a\nb"), "model");
        check_refused(create("project", "s", ""), "is empty");
        check_refused(create("rows", "q", 0), "rows is 0");
        memset(longest, 'p', sizeof(longest));
        longest[sizeof(longest) - 1] = 0;
        check_refused(create("project", "s", longest), "more than 4096 bytes");
        end();
}

static void test_names(void) {
        static const char *const bad[] = {"--privileged", "-v/:/h", "x;id", "$(id)", "../../x", "A1", "a\nb", "a b", "a.b", "é",
                                          "abcdefghijklmnopqrstuvwxyz012"};

        begin();
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                check_refused(create("id", "s", bad[i]), "is no session's id");
        end();
}

static void test_bounds(void) {
        sd_bus_message *m;

        begin();
        m = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
        CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
        CHECK(sd_bus_message_open_container(m, 'e', "sv") >= 0);
        CHECK(sd_bus_message_append(m, "s", "command") >= 0);
        CHECK(sd_bus_message_open_container(m, 'v', "as") >= 0);
        CHECK(sd_bus_message_open_container(m, 'a', "s") >= 0);
        for (unsigned i = 0; i < 100000; i++)
                CHECK(sd_bus_message_append(m, "s", "x") >= 0);
        for (unsigned i = 0; i < 4; i++)
                CHECK(sd_bus_message_close_container(m) >= 0);
        check_refused(call_send(&w, client, m), "more than 1024 entries");

        m = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
        CHECK(sd_bus_message_append(m, "a{sv}", 2, "model", "s", "a", "model", "s", "b") >= 0);
        check_refused(call_send(&w, client, m), "given twice");
        end();
}

static void test_stdio(void) {
        int pair[2], pipes[2], file = open("/dev/null", O_RDWR | O_CLOEXEC), folder = open("/", O_DIRECTORY | O_CLOEXEC);
        sd_bus_message *m;
        Reply r;

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 && pipe2(pipes, O_CLOEXEC) == 0);
        begin();
        check_refused(create("stdin", "h", pair[0]), "stdin is a socket");
        check_refused(create("stdin", "h", folder), "neither a file nor a pipe nor a terminal");
        check_refused(create("stdin", "h", pipes[1]), "is not open for reading");
        check_refused(create("stdout", "h", pipes[0]), "is not open for writing");
        check_refused(create("stdout", "h", file), "together");
        check_refused(create("projectFd", "h", pair[0]), "projectFd is no directory");
        check_refused(create("projectFd", "h", file), "projectFd is no directory");
        m = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
        CHECK(sd_bus_message_append(m, "a{sv}", 4, "stdin", "h", pipes[0], "stdout", "h", pipes[1], "stderr", "h", file,
                                    "projectFd", "h", folder) >= 0);
        r = call_send(&w, client, m);
        CHECK_FINE(r);
        CHECK(w.manager->seen.stdio[0] >= 0 && w.manager->seen.stdio[2] >= 0 && w.manager->seen.project_fd >= 0);
        reply_done(&r);
        m = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
        CHECK(sd_bus_message_append(m, "a{sv}", 4, "interactive", "b", 1, "stdin", "h", file, "stdout", "h", file, "stderr", "h", file) >= 0);
        r = call_send(&w, client, m);
        CHECK_ERROR(r, "InvalidArgument");
        reply_done(&r);
        end();
        for (unsigned i = 0; i < 2; i++) {
                close(pair[i]);
                close(pipes[i]);
        }
        close(file);
        close(folder);
}

static void test_types(void) {
        static const struct {
                const char *path, *interface, *member;
        } methods[] = {
                {BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe"}, {BUS_ROOT, BUS_MANAGER_INTERFACE, "Unsubscribe"},
                {BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession"}, {BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession"},
                {BUS_ROOT, BUS_MANAGER_INTERFACE, "ListSessions"}, {BUS_ROOT, BUS_MANAGER_INTERFACE, "ListThreads"},
                {BUS_ROOT, BUS_MANAGER_INTERFACE, "ListGrants"}, {BUS_ROOT, BUS_MANAGER_INTERFACE, "ListReceipts"},
                {BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload"}, {BUS_ROOT, BUS_MANAGER_INTERFACE, "CheckConfiguration"},
                {A1, BUS_SESSION_INTERFACE, "Start"}, {A1, BUS_SESSION_INTERFACE, "Stop"}, {A1, BUS_SESSION_INTERFACE, "Kill"},
                {A1, BUS_SESSION_INTERFACE, "Describe"}, {A1, BUS_SESSION_INTERFACE, "Attach"}, {A1, BUS_SESSION_INTERFACE, "OpenStdio"}, {A1, BUS_SESSION_INTERFACE, "Resize"},
                {A1, BUS_SESSION_INTERFACE, "Grant"}, {A1, BUS_SESSION_INTERFACE, "Collect"},
                {A1, BUS_SESSION_INTERFACE, "ReadTranscript"},
        };

        begin();
        for (size_t i = 0; i < ELEMENTSOF(methods); i++) {
                Reply r = call(&w, client, methods[i].path, methods[i].interface, methods[i].member, "dd", 1.0, 2.0);

                if (!r.failed)
                        test_fail(__FILE__, __LINE__, "%s took \"dd\"", methods[i].member);
                reply_done(&r);
        }
        CHECK_INT(w.manager->acts, 0);
        end();
}

static void test_session(void) {
        const void *data;
        uint64_t next;
        size_t size;
        Reply r;

        begin();
        for (unsigned i = 0; i < 2; i++) {
                r = call(&w, client, A1, BUS_SESSION_INTERFACE, i == 0 ? "Start" : "Stop", NULL);
                CHECK_FINE(r);
                reply_done(&r);
        }
        r = call(&w, client, A1, BUS_SESSION_INTERFACE, "Kill", "i", SIGHUP);
        CHECK_FINE(r);
        CHECK_INT(a1->signal, SIGHUP);
        reply_done(&r);
        r = call(&w, client, A1, BUS_SESSION_INTERFACE, "Resize", "qq", 24, 80);
        CHECK_FINE(r);
        CHECK(a1->rows == 24 && a1->columns == 80);
        reply_done(&r);
        r = call(&w, client, A1, BUS_SESSION_INTERFACE, "OpenStdio", NULL);
        CHECK_FINE(r);
        CHECK(sd_bus_message_has_signature(r.message, "hhh"));
        reply_done(&r);
        r = call(&w, client, A1, BUS_SESSION_INTERFACE, "ReadTranscript", "tu", (uint64_t) 5, 0xffffffffU);
        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "t", &next) > 0);
        CHECK(sd_bus_message_read_array(r.message, 'y', &data, &size) > 0);
        CHECK_INT(size, 1024 * 1024);
        CHECK_INT(next, 5 + 1024 * 1024);
        reply_done(&r);
        r = call(&w, client, A1, BUS_SESSION_INTERFACE, "Describe", NULL);
        CHECK_FINE(r);
        CHECK(sd_bus_message_has_signature(r.message, "a{sv}"));
        reply_done(&r);
        r = call(&w, client, A1, BUS_SESSION_INTERFACE, "Collect", NULL);
        CHECK_FINE(r);
        CHECK(!manager_find(w.manager, "a1"));
        reply_done(&r);
        end();
}

static void test_session_arguments(void) {
        begin();
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Kill", "i", 0), "0 is no signal");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Kill", "i", -9), "-9 is no signal");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Kill", "i", 65), "65 is no signal");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Resize", "qq", 0, 80), "0 rows");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "ReadTranscript", "tu", (uint64_t) 0, 0), "max is 0");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Attach", "a{sv}", 1, "raw", "b", 1), "Attach knows no option \"raw\"");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "example.com/x", "once"), "the host");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "example.com:22", "once"), "the host");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "*", "once"), "the host");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "example.com", "31d"), "duration");
        check_refused(call(&w, client, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "example.com", "forever"), "duration");
        end();
}

static void test_grants(void) {
        const char *path, *host, *duration;
        uint64_t expires;
        uint32_t by;
        Reply r;
        int used;

        begin();
        r = call(&w, client, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "API.example.com", "1h 30m");
        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "o", &path) > 0);
        CHECK_STR(path, BUS_GRANT_ROOT "/a1/1");
        reply_done(&r);
        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListGrants", "s", "a1");
        CHECK_FINE(r);
        CHECK(sd_bus_message_enter_container(r.message, 'a', "(osstu)") > 0);
        CHECK(sd_bus_message_read(r.message, "(osstu)", &path, &host, &duration, &expires, &by) > 0);
        CHECK_STR(host, "api.example.com");
        CHECK_STR(duration, "1h 30m");
        CHECK(expires > now_realtime() && by == geteuid());
        reply_done(&r);
        r = call(&w, client, BUS_GRANT_ROOT "/a1/1", "org.freedesktop.DBus.Properties", "Get", "ss", BUS_GRANT_INTERFACE, "Used");
        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "v", "b", &used) > 0);
        CHECK_INT(used, 0);
        reply_done(&r);
        r = call(&w, client, BUS_GRANT_ROOT "/a1/1", BUS_GRANT_INTERFACE, "Revoke", NULL);
        CHECK_FINE(r);
        reply_done(&r);
        r = call(&w, client, BUS_GRANT_ROOT "/a1/1", BUS_GRANT_INTERFACE, "Revoke", NULL);
        CHECK_ERROR(r, "NotFound");
        reply_done(&r);
        end();
}

static void check_said(const char *text, const char *answer) {
        Reply r = call(&w, client, A1, BUS_SESSION_INTERFACE, "Say", "s", text);
        const char *reply = r.failed ? r.text : "";

        if (!r.failed)
                CHECK(sd_bus_message_read(r.message, "s", &reply) > 0);
        CHECK_STR(reply, answer);
        reply_done(&r);
}

static void test_said(void) {
        begin();
        check_said("!grants", "Nothing is granted beyond what is configured.");
        check_said("!grant API.example.com", "api.example.com is granted for the session's next connection to it.");
        check_said("!grant *.example.com 90m", "*.example.com is granted for 1h 30m.");
        check_said("!grant api.example.com always", "api.example.com is granted for as long as the session is kept.");
        check_said("!grants", "Granted: api.example.com (once), *.example.com (1h 30m), api.example.com (always).");
        check_said("!revoke api.example.com", "api.example.com is not granted any more. Connections that are open stay so.");
        check_said("!grants", "Granted: *.example.com (1h 30m).");
        check_said("!revoke api.example.com", "session a1 has no grant for api.example.com; !grants lists those that it has");
        check_said("!grant *", "the host \"*\" would cover every host");
        check_said("!Stop", "!Stop is no command; there are !grant, !revoke, !grants, !answer, !interrupt, !stop, !status and !help, and what does not begin "
                            "with ! is said to the agent");
        check_said("!status", "Session a1 is created.");
        w.manager->talks = true;
        w.manager->conversation = (ConversationState){.reached = true, .known = true, .ready = true, .turn = true, .prompt = 4, .queued = 2, .n_questions = 1, .questions = {9}};
        check_said("!status", "Session a1 is created. Its agent works on prompt 4. 2 prompts wait. It asks, as its transcript has it: !answer 9 OPTION answers.");
        check_said("go on", "It waits: the agent has 3 to do before it.");
        CHECK_STR(w.manager->seen_text, "go on");
        w.manager->conversation = (ConversationState){.reached = true, .known = true, .ready = true};
        check_said("!status", "Session a1 is created. Its agent waits for a prompt.");
        check_said(" !stop", "It is on its way to the agent.");
        CHECK_STR(w.manager->seen_text, " !stop");
        check_said("!answer 3 yes please", "The agent has the answer.");
        CHECK_STR(w.manager->seen_text, "3 yes please");
        check_said("!answer yes", "The agent has the answer.");
        CHECK_STR(w.manager->seen_text, "0 yes");
        check_said("!interrupt", "The turn is being ended, and what waited is dropped.");
        check_said("!stop", "The session has ended.");
        end();
}

static void test_receipts(void) {
        const char *host;
        unsigned n = 0;
        Reply r;

        begin();
        for (unsigned i = 0; i < 5; i++)
                fake_receipt(w.manager, "a1");
        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListReceipts", "a{sv}", 2, "session", "s", "a1", "before", "t", (uint64_t) 5);
        CHECK_FINE(r);
        CHECK(sd_bus_message_enter_container(r.message, 'a', "a{sv}") > 0);
        while (sd_bus_message_skip(r.message, "a{sv}") > 0)
                n++;
        CHECK_INT(n, 4);
        reply_done(&r);
        r = call(&w, client, BUS_RECEIPT_ROOT "/5", "org.freedesktop.DBus.Properties", "Get", "ss", BUS_RECEIPT_INTERFACE, "Host");
        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "v", "s", &host) > 0);
        CHECK_STR(host, "api.example.com");
        reply_done(&r);
        w.manager->queries = 0;
        r = call(&w, client, BUS_RECEIPT_ROOT "/5", "org.freedesktop.DBus.Properties", "GetAll", "s", BUS_RECEIPT_INTERFACE);
        CHECK_FINE(r);
        CHECK_INT(w.manager->queries, 1);
        reply_done(&r);
        r = call(&w, client, BUS_RECEIPT_ROOT "/6", "org.freedesktop.DBus.Properties", "GetAll", "s", BUS_RECEIPT_INTERFACE);
        CHECK_ERROR(r, "NotFound");
        reply_done(&r);
        check_refused(call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListReceipts", "a{sv}", 1, "limit", "u", 1001), "from 1 to 1000");
        check_refused(call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListReceipts", "a{sv}", 1, "outcome", "s", "great"), "outcome");
        check_refused(call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListReceipts", "a{sv}", 1, "sesion", "s", "a"),
                      "did you mean \"session\"?");
        end();
}

static void test_configuration(void) {
        static const char text[] = "{\"sandbox\": {\"memry\": \"4g\"}, \"nonsense\": 1}";
        char path[] = "/tmp/test-bus-XXXXXX";
        int fd = mkostemp(path, O_CLOEXEC);
        const char *problem;
        Reply r;

        CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        begin();
        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CheckConfiguration", "s", path);
        CHECK_FINE(r);
        CHECK(sd_bus_message_enter_container(r.message, 'a', "s") > 0);
        CHECK(sd_bus_message_read(r.message, "s", &problem) > 0);
        CHECK(strstr(problem, "memry") || strstr(problem, "nonsense"));
        CHECK(sd_bus_message_read(r.message, "s", &problem) > 0); /* all at once */
        reply_done(&r);
        unlink(path);
        close(fd);
        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CheckConfiguration", "s", path);
        CHECK_ERROR(r, "NotFound");
        reply_done(&r);
        check_refused(call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CheckConfiguration", "s", "errand.json"), "no absolute path");
        check_refused(call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CheckConfiguration", "s", "/"), "not a regular file");
        w.manager->fail = (Fault){.code = ERROR_CONFIGURATION, .text = strdup("one\ntwo \xff")};
        r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", NULL);
        CHECK_ERROR(r, "Configuration");
        CHECK_STR(r.text, "one\\ntwo \\xff"); /* not UTF-8, so escaped */
        reply_done(&r);
        end();
}

static void test_properties(void) {
        const char *line;
        Reply r;

        begin();
        r = call(&w, client, BUS_ROOT, "org.freedesktop.DBus.Properties", "GetAll", "s", BUS_MANAGER_INTERFACE);
        CHECK_FINE(r);
        reply_done(&r);
        r = call(&w, client, BUS_ROOT, "org.freedesktop.DBus.Properties", "Get", "ss", BUS_MANAGER_INTERFACE, "Report");
        CHECK_FINE(r);
        CHECK(sd_bus_message_enter_container(r.message, 'v', "as") > 0);
        CHECK(sd_bus_message_enter_container(r.message, 'a', "s") > 0);
        CHECK(sd_bus_message_read(r.message, "s", &line) > 0);
        CHECK_STR(line, "sandbox: bailey");
        CHECK(sd_bus_message_read(r.message, "s", &line) > 0);
        CHECK_STR(line, "a line that is not UTF-8: \\xff");
        reply_done(&r);
        r = call(&w, client, A1, "org.freedesktop.DBus.Properties", "GetAll", "s", BUS_SESSION_INTERFACE);
        CHECK_FINE(r);
        reply_done(&r);
        end();
}

static void test_faults(void) {
        static const struct {
                ErrorCode code;
                const char *name;
        } faults[] = {
                {ERROR_INVALID_ARGUMENT, "InvalidArgument"}, {ERROR_NOT_FOUND, "NotFound"}, {ERROR_NOT_PERMITTED, "NotPermitted"},
                {ERROR_WRONG_STATE, "WrongState"}, {ERROR_EXISTS, "Exists"}, {ERROR_LIMIT, "LimitExceeded"},
                {ERROR_CONFIGURATION, "Configuration"}, {ERROR_NOT_ENFORCEABLE, "NotEnforceable"}, {ERROR_SETUP, "SetupFailed"},
                {ERROR_STORAGE, "Storage"},
        };

        CHECK_INT(ELEMENTSOF(faults), _ERROR_CODE_MAX - 1);
        begin();
        for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
                char name[64];
                Reply r;

                w.manager->fail = (Fault){.code = faults[i].code, .text = strdup("because")};
                r = call(&w, client, A1, BUS_SESSION_INTERFACE, "Start", NULL);
                snprintf(name, sizeof(name), "org.errand1.Error.%s", faults[i].name);
                CHECK_STR(r.error, name);
                CHECK_STR(r.text, "because");
                reply_done(&r);
        }
        end();
}

int main(void) {
        RUN(test_lists, "ListThreads, ListSessions and GetSession");
        RUN(test_create, "CreateSession with every kind of option");
        RUN(test_options, "CreateSession refuses unknown options with the nearest, wrong types and bad values, and nothing happens");
        RUN(test_names, "C199: session names that look like options, paths or shell");
        RUN(test_bounds, "CreateSession bounds its lists");
        RUN(test_stdio, "a socket or directory where a file is expected, and files where a directory is");
        RUN(test_types, "every method with arguments of a wrong type");
        RUN(test_session, "the session's methods");
        RUN(test_session_arguments, "S134: the session's methods refuse bad arguments, and nothing happens");
        RUN(test_grants, "D002 S131: a grant is given, listed, read and revoked");
        RUN(test_said, "S131: what is said in the thread is done, and answered in a sentence");
        RUN(test_receipts, "D002: receipts are listed and resolved, one look-up a message");
        RUN(test_configuration, "CheckConfiguration reports everything at once; Reload passes the problems on");
        RUN(test_properties, "properties, also with text that is not UTF-8");
        RUN(test_faults, "every fault has its error's name");
        return TEST_END();
}
