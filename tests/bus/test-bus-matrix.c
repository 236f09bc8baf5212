/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <systemd/sd-id128.h>

#include "arguments.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/action.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-link.h"
#include "polkit-world.h"
#include "test.h"

/* Every method that introspection tells of, in every situation that a caller can bring about: one row each, and a method without a row fails. */

#define MANAGER BUS_MANAGER_INTERFACE
#define SESSION BUS_SESSION_INTERFACE
#define GRANT BUS_GRANT_INTERFACE
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define LOG_CONTROL "org.freedesktop.LogControl1"

typedef enum Way {
        LOOKS, /* has no effect */
        ACTS,  /* is done when it is answered */
        WAITS, /* is begun, and answered when it is done */
        NEVER, /* nobody but root */
} Way;

typedef struct Row {
        const char *path; /* '@': the session's id, '#': the receipt's number */
        const char *interface, *member, *arguments;
        const char *own, *others; /* polkit's actions; "": nobody is asked; others NULL: it is about no session */
        Way way;
        const char *bad[16]; /* arguments of the right type that are refused */
} Row;

#define OWN(verb) "org.errand1." verb "-own"
#define OTHERS(verb) "org.errand1." verb "-others"
#define BOTH(verb) OWN(verb), OTHERS(verb)
#define NOBODY "", NULL
#define S BUS_SESSION_ROOT "/@"
#define BAD_IDS "s|", "s|A1", "s|a1/", "s|../a1", "s|--help", "s|%29", "s|%4097", "s|%200000"

static const Row rows[] = {
        {BUS_ROOT, "org.freedesktop.DBus.Peer", "Ping", "", NOBODY, LOOKS, {}},
        {BUS_ROOT, "org.freedesktop.DBus.Peer", "GetMachineId", "", NOBODY, LOOKS, {}},
        {BUS_ROOT, "org.freedesktop.DBus.Introspectable", "Introspect", "", NOBODY, LOOKS, {}},
        {BUS_ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "", OWN("read"), NULL, LOOKS, {}},
        {S, PROPERTIES, "Get", "ss|" SESSION "|State", BOTH("read"), LOOKS, {"ss||State", "ss|" SESSION "|", "ss|" SESSION "|state", "ss|" GRANT "|Host",
                                                                            "ss|%4097|%4097", "ss|x.y|State"}},
        {S, PROPERTIES, "GetAll", "s|" SESSION, BOTH("read"), LOOKS, {"s|", "s|" GRANT, "s|" MANAGER, "s|%4097", "s|org.freedesktop.DBus.Peer"}},
        {BUS_GRANT_ROOT "/@/1", PROPERTIES, "GetAll", "s|" GRANT, BOTH("read"), LOOKS, {"s|" SESSION}},
        {BUS_RECEIPT_ROOT "/#", PROPERTIES, "GetAll", "s|" BUS_RECEIPT_INTERFACE, BOTH("read"), LOOKS, {"s|" SESSION}},
        {BUS_ROOT, PROPERTIES, "Get", "ss|" MANAGER "|Report", OWN("read"), NULL, LOOKS, {}},
        {BUS_ROOT, PROPERTIES, "Get", "ss|" MANAGER "|Version", NOBODY, LOOKS, {}},
        {"/org/freedesktop/LogControl1", PROPERTIES, "Set", "ssv|" LOG_CONTROL "|LogLevel|debug", NOBODY, NEVER, {}},

        {BUS_ROOT, MANAGER, "Subscribe", "", NOBODY, LOOKS, {}},
        {BUS_ROOT, MANAGER, "Unsubscribe", "", NOBODY, LOOKS, {}},
        {BUS_ROOT, MANAGER, "CreateSession", "a{sv}|project|s|#", "org.errand1.create-session", "org.errand1.create-others", ACTS,
         {"a{sv}|colour|s|red", "a{sv}|project|i|1", "a{sv}|project|s|", "a{sv}|project|s|%4097", "a{sv}|project|s|a|project|s|b", "a{sv}|id|s|A",
          "a{sv}|id|s|%29", "a{sv}|network|s|open", "a{sv}|allow|as|http://x", "a{sv}|allow|as|a..b", "a{sv}|env|a{ss}|A=B", "a{sv}|rows|q|0",
          "a{sv}|stdin|h|0", "a{sv}|command|as|%40000", "a{sv}|projectFd|h|1", "a{sv}|%4097|s|x"}},
        {BUS_ROOT, MANAGER, "GetSession", "s|@", BOTH("read"), LOOKS, {BAD_IDS}},
        {BUS_ROOT, MANAGER, "ListSessions", "", OWN("read"), NULL, LOOKS, {}},
        {BUS_ROOT, MANAGER, "ListThreads", "", OWN("read"), NULL, LOOKS, {}},
        {BUS_ROOT, MANAGER, "ListGrants", "s|@", BOTH("read"), LOOKS, {BAD_IDS}},
        {BUS_ROOT, MANAGER, "ListReceipts", "a{sv}|limit|u|5", OWN("read"), NULL, LOOKS,
         {"a{sv}|limit|u|0", "a{sv}|limit|u|1001", "a{sv}|limit|s|x", "a{sv}|outcome|s|fine", "a{sv}|session|s|", "a{sv}|provider|s|%4097",
          "a{sv}|since|s|today", "a{sv}|before|i|1", "a{sv}|number|t|1", "a{sv}|limit|u|1|limit|u|2"}},
        {BUS_ROOT, MANAGER, "Reload", "", "org.errand1.manage-daemon", NULL, ACTS, {}},
        {BUS_ROOT, MANAGER, "CheckConfiguration", "s|/proc/self/status", "org.errand1.manage-daemon", NULL, LOOKS,
         {"s|", "s|errand.json", "s|/nowhere/errand.json", "s|/", "s|/dev/zero", "s|%4097"}},

        {S, SESSION, "Start", "", BOTH("control"), WAITS, {}},
        {S, SESSION, "Stop", "", BOTH("control"), WAITS, {}},
        {S, SESSION, "Kill", "i|15", BOTH("control"), ACTS, {"i|0", "i|-1", "i|65", "i|2147483647"}},
        {S, SESSION, "Describe", "", BOTH("read"), LOOKS, {}},
        {S, SESSION, "Attach", "a{sv}", BOTH("attach"), WAITS, {"a{sv}|raw|b|1"}},
        {S, SESSION, "OpenStdio", "", BOTH("attach"), ACTS, {}},
        {S, SESSION, "Resize", "qq|24|80", BOTH("attach"), ACTS, {"qq|0|80", "qq|24|0"}},
        {S, SESSION, "Grant", "ss|api.example.com|10m", BOTH("grant"), ACTS,
         {"ss||once", "ss|*|once", "ss|a..b|once", "ss|-a.b|once", "ss|a.b:443|once", "ss|https://a.b|once", "ss|%4097|once", "ss|a.b|", "ss|a.b|never",
          "ss|a.b|31d", "ss|a.b|0s", "ss|a.b|-1m", "ss|a.b|18446744073709551616s", "ss|a.b|%4097"}},
        {S, SESSION, "Prompt", "s|fix the build", BOTH("control"), WAITS, {}},
        {S, SESSION, "Interrupt", "", BOTH("control"), WAITS, {}},
        {S, SESSION, "Say", "s|fix the build", BOTH("control"), WAITS, {"s|!", "s|!Stop", "s|!grantx", "s|! stop"}},
        {S, SESSION, "Say", "s|!grant api.example.com 10m", BOTH("grant"), ACTS,
         {"s|!grant", "s|!grant *", "s|!grant a..b", "s|!grant a.b never", "s|!grant a.b 31d", "s|!grant a.b 0s", "s|!grant https://a.b", "s|!grant a.b:443"}},
        {S, SESSION, "Say", "s|!revoke one.example.com", BOTH("grant"), ACTS, {"s|!revoke", "s|!revoke a.b c.d", "s|!revoke a..b", "s|!revoke nobody.example.com"}},
        {S, SESSION, "Say", "s|!grants", BOTH("read"), LOOKS, {"s|!grants all"}},
        {S, SESSION, "Say", "s|!answer 3 yes", BOTH("control"), WAITS, {"s|!answer", "s|!answer 0 yes"}},
        {S, SESSION, "Say", "s|!interrupt", BOTH("control"), WAITS, {"s|!interrupt now"}},
        {S, SESSION, "Say", "s|!stop", BOTH("control"), WAITS, {"s|!stop now"}},
        {S, SESSION, "Say", "s|!status", BOTH("read"), LOOKS, {"s|!status all"}},
        {S, SESSION, "Say", "s|!help", BOTH("read"), LOOKS, {"s|!help me"}},
        {S, SESSION, "Collect", "", BOTH("collect"), WAITS, {}},
        {S, SESSION, "ReadTranscript", "tu|0|10", BOTH("read"), LOOKS, {"tu|0|0"}},
        {BUS_GRANT_ROOT "/@/1", GRANT, "Revoke", "", BOTH("grant"), ACTS, {}},
};

static const char *const paths[] = {BUS_ROOT, BUS_SESSION_ROOT "/a1", BUS_GRANT_ROOT "/a1/1", BUS_RECEIPT_ROOT "/1", "/org/freedesktop/LogControl1"};

static PolkitWorld w;
static const Row *row;

/* libsystemd answers these itself, and does not look at their arguments. */
static bool is_peer(void) {
        return streq(row->interface, "org.freedesktop.DBus.Peer");
}

static bool asked_about(void) {
        return *row->own;
}

static Manager *manager(void) {
        return w.bus->world.manager;
}

static void turn(void) {
        CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
}

/* The client's uid is asked for once: it is known from here on. */
static void begin(FakeAnswer answer) {
        Reply r;

        if (w.bus) /* of a row that failed */
                polkit_world_end(&w);
        polkit_world_begin(&w, NULL);
        w.polkit.answer = answer;
        manager()->wait = row->way == WAITS;
        r = call(&w.bus->world, w.client, BUS_ROOT, "org.freedesktop.DBus.Peer", "Ping", NULL);
        CHECK_FINE(r);
        reply_done(&r);
}

static void end(void) {
        polkit_world_end(&w);
}

static Session *session_of(bool own) {
        return own ? w.a1 : w.b2;
}

static sd_bus_message *message(bool own, const char *arguments) {
        const char *id = own ? "a1" : "b2", *sign;
        char path[64];
        sd_bus_message *m;

        sign = row->path + strcspn(row->path, "@#");
        (void) snprintf(path, sizeof(path), "%.*s%s%s", (int) (sign - row->path), row->path, *sign == '@' ? id : *sign ? own ? "1" : "2" : "",
                        *sign ? sign + 1 : "");
        m = call_new(w.client, path, row->interface, row->member);
        if (arguments && arguments_append(m, arguments, id, own ? "mine" : "theirs") < 0)
                test_fail(__FILE__, __LINE__, "%s.%s: \"%s\" cannot be sent", row->interface, row->member, arguments);
        return m;
}

static bool is_refusal(const Reply *r) {
        return streq(reply_error(r), "NotPermitted") || streq(reply_error(r), "NotFound");
}

static bool is_bad(const Reply *r) {
        return streq(reply_error(r), "InvalidArgument") || streq(reply_error(r), "NotFound") || streq(reply_error(r), "NotPermitted") ||
               streq(reply_error(r), SD_BUS_ERROR_INVALID_ARGS) || streq(reply_error(r), SD_BUS_ERROR_UNKNOWN_INTERFACE);
}

static void expect(const Reply *r, bool good, const char *what) {
        if (!good)
                test_fail(__FILE__, __LINE__, "%s: %s (%s)", what, reply_error(r), r->failed ? r->text : "it worked");
}

/* Calls, and brings to its end what is begun by it. */
static Reply do_call(bool own, const char *arguments, ErrorCode end_as) {
        Waiting waiting;
        Reply r;

        call_start(w.client, message(own, arguments), &waiting);
        while (!waiting.answered && !session_of(own)->done)
                turn();
        if (!waiting.answered)
                fake_finish(session_of(own), end_as, "it broke", -EBADF);
        while (!waiting.answered)
                turn();
        r = waiting.reply;
        sd_bus_slot_unref(waiting.slot);
        return r;
}

static void check_denied(FakeAnswer answer, bool own) {
        Reply r;

        begin(answer);
        r = do_call(own, row->arguments, ERROR_NONE);
        expect(&r, (asked_about() || row->way == NEVER) == is_refusal(&r), "denied");
        if (asked_about() && !own)
                CHECK_STR(reply_error(&r), row->others && strstr(row->others, "create") ? "NotPermitted" : "NotFound");
        reply_done(&r);
        CHECK_INT(w.polkit.asked, asked_about());
        if (asked_about())
                CHECK_STR(w.polkit.action, own ? row->own : row->others);
        CHECK_INT(manager()->acts, 0);
        end();
}

static void check_allowed(bool own) {
        Reply r;

        begin(POLKIT_YES);
        r = do_call(own, row->arguments, ERROR_NONE);
        if (streq(row->member, "Attach")) /* there is no terminal behind it, and it is told that it cannot be sent */
                CHECK(r.failed && !is_refusal(&r) && !streq(r.error, SD_BUS_ERROR_NO_REPLY));
        else
                expect(&r, r.failed == (row->way == NEVER), "allowed");
        reply_done(&r);
        CHECK_INT(w.polkit.asked, asked_about());
        CHECK_INT(manager()->acts, row->way == ACTS || row->way == WAITS);
        end();
}

/* It has the question, and ends. */
static void check_vanishing(bool own) {
        Waiting waiting;

        if (!asked_about())
                return;
        begin(POLKIT_HANG);
        call_start(w.client, message(own, row->arguments), &waiting);
        while (w.polkit.asked == 0)
                turn();
        CHECK(!waiting.answered && manager()->acts == 0);
        fake_polkit_end(&w.polkit);
        while (!waiting.answered)
                turn();
        expect(&waiting.reply, is_refusal(&waiting.reply), "polkit ends");
        waiting_done(&waiting);
        CHECK_INT(manager()->acts, 0);
        end();
}

static void leave(void) {
        w.client = sd_bus_flush_close_unref(w.client);
        while (bus_connections(w.bus->world.bus) > 0)
                turn();
}

/* While polkit is asked. */
static void check_gone_unasked(void) {
        Waiting waiting;

        if (!asked_about())
                return;
        begin(POLKIT_HANG);
        call_start(w.client, message(true, row->arguments), &waiting);
        while (w.polkit.asked == 0)
                turn();
        waiting_done(&waiting);
        leave();
        fake_polkit_answer(&w.polkit, true);
        message_bus_settle(w.bus, w.bus->service);
        CHECK_INT(w.polkit.cancelled, 1);
        CHECK_INT(manager()->acts, 0);
        end();
}

/* While it is done; and a call that wants no answer, of a client that does not wait for any. */
static void check_gone(void) {
        sd_bus_message *m;
        Waiting waiting;

        begin(POLKIT_YES);
        call_start(w.client, message(true, row->arguments), &waiting);
        while (!waiting.answered && !w.a1->done)
                turn();
        waiting_done(&waiting);
        leave();
        if (w.a1->done)
                fake_finish(w.a1, ERROR_NONE, NULL, -EBADF);
        message_bus_settle(w.bus, w.bus->service);
        end();

        begin(POLKIT_NO);
        m = message(true, row->arguments);
        CHECK(sd_bus_message_set_expect_reply(m, false) >= 0 && sd_bus_send(w.client, m, NULL) >= 0);
        sd_bus_message_unref(m);
        leave();
        message_bus_settle(w.bus, w.bus->service);
        CHECK_INT(manager()->acts, 0);
        end();
}

static void check_limit(void) {
        static Waiting waiting[BUS_ACCOUNT_HELD_MAX];
        Reply r;

        if (row->way == NEVER)
                return;
        begin(POLKIT_HANG);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                call_start(w.client, call_new(w.client, BUS_ROOT, MANAGER, "Reload"), waiting + i);
        while (w.polkit.asked < ELEMENTSOF(waiting))
                turn();
        w.bus->world.bus->delay_usec = USEC_PER_MSEC;
        r = do_call(true, row->arguments, ERROR_NONE);
        expect(&r, asked_about() == streq(reply_error(&r), "LimitExceeded"), "too many calls wait");
        reply_done(&r);
        CHECK_INT(w.polkit.asked, ELEMENTSOF(waiting));
        CHECK_INT(manager()->acts, 0);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                waiting_done(waiting + i);
        end();
}

static void check_operations(void) {
        static Waiting waiting[BUS_OPERATIONS_MAX];
        Session *sessions[BUS_OPERATIONS_MAX];
        Reply r;

        if (row->way != WAITS)
                return;
        begin(POLKIT_YES);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                char id[16];

                (void) snprintf(id, sizeof(id), "s%zu", i);
                sessions[i] = fake_session(manager(), id, message_bus_account());
                call_start(w.client, call_new(w.client, bus_session_path(id).text, SESSION, "Start"), waiting + i);
                while (manager()->acts <= i)
                        turn();
        }
        r = do_call(true, row->arguments, ERROR_NONE);
        expect(&r, streq(reply_error(&r), "LimitExceeded"), "too many calls are under way");
        reply_done(&r);
        CHECK_INT(manager()->acts, ELEMENTSOF(waiting));
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                waiting_done(waiting + i);
                fake_finish(sessions[i], ERROR_NONE, NULL, -EBADF);
        }
        end();
}

static bool reads_disk(void) {
        return streq(row->member, "ListReceipts") || streq(row->member, "ReadTranscript");
}

/* What it asks for fails: at once, or when it was begun. */
static void check_failed(void) {
        Reply r;

        if (row->way != ACTS && row->way != WAITS && !reads_disk())
                return;
        begin(POLKIT_YES);
        manager()->fail = (Fault){.code = ERROR_SETUP, .text = strdup("it broke")};
        manager()->unreadable = true;
        r = do_call(true, row->arguments, ERROR_NONE);
        expect(&r, streq(reply_error(&r), reads_disk() ? "Storage" : "SetupFailed"), "it fails");
        CHECK_STR(r.text, reads_disk() ? "the disk cannot be read" : "it broke");
        reply_done(&r);
        fault_done(&manager()->fail);
        if (row->way == WAITS) {
                r = do_call(true, row->arguments, ERROR_SETUP);
                expect(&r, streq(reply_error(&r), "SetupFailed") && streq(r.text, "it broke"), "it fails later");
                reply_done(&r);
        }
        end();
}

static void check_malformed(void) {
        static const char *const types[] = {"", "s|x", "i|1", "v|x", "h|0", "as|x", "a{ss}|x", "a{sv}|x|s|y", "ss|x|y", "sss|x|y|z", "ssv|x|y|z", "tu|1|1",
                                            "qq|1|1", "o|/", "g|s", "d|1", "iii|1|2|3", "b|1"};
        size_t n = strcspn(row->arguments, "|");
        unsigned acts;
        Reply r;

        begin(POLKIT_YES);
        acts = manager()->acts;
        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                if (strcspn(types[i], "|") == n && strncmp(types[i], row->arguments, n) == 0)
                        continue;
                r = do_call(true, types[i], ERROR_NONE);
                if (!is_bad(&r) && !is_peer())
                        test_fail(__FILE__, __LINE__, "arguments \"%s\": %s", types[i], reply_error(&r));
                reply_done(&r);
        }
        for (size_t i = 0; i < ELEMENTSOF(row->bad) && row->bad[i]; i++) {
                r = do_call(true, row->bad[i], ERROR_NONE);
                if (!is_bad(&r))
                        test_fail(__FILE__, __LINE__, "arguments \"%.64s\": %s", row->bad[i], reply_error(&r));
                reply_done(&r);
        }
        CHECK_INT(manager()->acts, acts);
        end();
}

static void test_row(void) {
        check_denied(POLKIT_NO, true);
        check_denied(POLKIT_ERROR, true);
        check_allowed(true);
        check_vanishing(true);
        if (row->others) {
                check_denied(POLKIT_NO, false);
                check_allowed(false);
                check_vanishing(false);
        }
        check_gone_unasked();
        check_gone();
        check_limit();
        check_operations();
        check_failed();
        check_malformed();
}

/* As many rows at a time as an account may ask about. */
static void check_hanging(const Row *const asked[], const bool own[], size_t n) {
        static Waiting waiting[BUS_ACCOUNT_HELD_MAX];

        begin(POLKIT_HANG);
        authorizer_polkit_set_timeouts(w.authorizer, 5 * USEC_PER_MSEC, USEC_INFINITY);
        for (size_t i = 0; i < n; i++) {
                row = asked[i];
                call_start(w.client, message(own[i], row->arguments), waiting + i);
        }
        for (size_t i = 0; i < n; i++) {
                row = asked[i];
                while (!waiting[i].answered)
                        turn();
                expect(&waiting[i].reply, is_refusal(&waiting[i].reply), row->member);
                waiting_done(waiting + i);
        }
        while (w.polkit.cancelled < n)
                turn();
        CHECK_INT(w.polkit.asked, n);
        fake_polkit_answer(&w.polkit, true); /* too late */
        message_bus_settle(w.bus, w.bus->service);
        CHECK_INT(manager()->acts, 0);
        end();
}

static void test_hanging(void) {
        const Row *asked[BUS_ACCOUNT_HELD_MAX];
        bool own[BUS_ACCOUNT_HELD_MAX];
        size_t n = 0;

        for (size_t i = 0; i < 2 * ELEMENTSOF(rows); i++) {
                row = rows + i / 2;
                if (asked_about() && (i % 2 == 0 || row->others)) {
                        asked[n] = row;
                        own[n++] = i % 2 == 0;
                }
                if (n == ELEMENTSOF(asked) || (i == 2 * ELEMENTSOF(rows) - 1 && n > 0)) {
                        check_hanging(asked, own, n);
                        n = 0;
                }
        }
}

static bool has_row(const char *interface, const char *member) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (streq(rows[i].interface, interface) && streq(rows[i].member, member))
                        return true;
        return false;
}

/* The text between name=" and the next quote, in place. */
static const char *name_in(char *line) {
        char *name = strstr(line, "name=\"");

        name += strlen("name=\"");
        name[strcspn(name, "\"")] = 0;
        return name;
}

static unsigned check_introspected(const char *path) {
        Reply r = call(&w.bus->world, w.client, path, "org.freedesktop.DBus.Introspectable", "Introspect", NULL);
        _cleanup_free_ char *copy = NULL;
        const char *interface = NULL, *xml;
        char *state = NULL;
        unsigned n = 0;

        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "s", &xml) > 0);
        copy = strdup(xml);
        reply_done(&r);
        for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
                line += strspn(line, " ");
                if (startswith(line, "<interface"))
                        interface = name_in(line);
                else if (startswith(line, "<method")) {
                        const char *member = name_in(line);

                        n++;
                        if (!has_row(interface, member))
                                test_fail(__FILE__, __LINE__, "%s: %s.%s has no row", path, interface, member);
                }
        }
        return n;
}

static void test_rows(void) {
        unsigned n = 0;

        row = rows;
        begin(POLKIT_YES);
        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                n += check_introspected(paths[i]);
        CHECK(n > 40);
        end();
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_ERROR - 1); /* every no of a broken polkit is told */
        message_bus_keep_daemon();
        RUN(test_rows, "C197 D001: every method that introspection tells of has a row");
        RUN(test_hanging, "C202 D001: each is denied when polkit says nothing for as long as is stated");
        for (row = rows; row < rows + ELEMENTSOF(rows); row++) {
                char name[160];
                sd_id128_t id;

                if (streq(row->member, "GetMachineId") && sd_id128_get_machine(&id) < 0)
                        continue; /* a minimal container has none: test-bus-gate has that */
                (void) snprintf(name, sizeof(name), "%sC193 C194 C197 C202 D001: %s.%s %s of %s in every situation", streq(row->member, "Say") ? "S141 " : "",
                                strrchr(row->interface, '.') + 1, row->member, streq(row->member, "Say") ? row->arguments + 2 : "", row->path);
                RUN(test_row, name);
        }
        message_bus_end_daemon();
        return TEST_END();
}
