/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/action.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-objects.h"
#include "test.h"
#include "world.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"
#define A1 BUS_SESSION_ROOT "/a1"
#define TEST_CALLS (BUS_HELD_MAX + 8)

static World w;
static TestAuthorizer authorizer;
static sd_bus *owner, *stranger;
static Session *a1;

static void begin_with(Authorizer *a) {
        w = world_new(a);
        a1 = fake_session(w.manager, "a1", geteuid());
        owner = world_client(&w, geteuid());
        stranger = world_client(&w, STRANGER);
}

static void begin(void) {
        authorizer = test_authorizer();
        begin_with(&authorizer.authorizer);
}

static void end(void) {
        sd_bus_close_unref(owner);
        sd_bus_close_unref(stranger);
        world_done(&w);
}

static const sd_bus_vtable *vtable_of(const char *interface) {
        static const sd_bus_vtable *const vtables[_BUS_OBJECT_KIND_MAX] = {manager_vtable, session_vtable, grant_vtable, receipt_vtable};
        BusObjectKind k = bus_object_kind_of(interface);

        return k < 0 ? NULL : vtables[k];
}

static void check_vtable(const char *interface) {
        for (const sd_bus_vtable *v = vtable_of(interface) + 1; v->type != _SD_BUS_VTABLE_END; v++) {
                const char *member = v->type == _SD_BUS_VTABLE_METHOD ? v->x.method.member : v->x.property.member;

                if (v->type == _SD_BUS_VTABLE_SIGNAL)
                        continue;
                if (!action_find(interface, member, v->type == _SD_BUS_VTABLE_METHOD ? MEMBER_METHOD : MEMBER_READ))
                        test_fail(__FILE__, __LINE__, "%s.%s is not in the gate's table", interface, member);
                if (v->type == _SD_BUS_VTABLE_METHOD)
                        CHECK(v->flags & SD_BUS_VTABLE_UNPRIVILEGED); /* the gate decides, not a capability */
                CHECK(v->type != _SD_BUS_VTABLE_WRITABLE_PROPERTY);
        }
}

/* A row for what is not there would let through whatever comes to have its name. */
static void check_rows(void) {
        const Action *table;
        size_t n;

        table = action_table(&n);
        for (size_t i = 0; i < n; i++) {
                const sd_bus_vtable *v = vtable_of(table[i].interface);

                bool method = table[i].kind == MEMBER_METHOD || table[i].kind == MEMBER_SAID;
                const char *member = table[i].kind == MEMBER_SAID ? "Say" : table[i].member;

                for (v = v ? v + 1 : NULL; v && v->type != _SD_BUS_VTABLE_END; v++)
                        if ((v->type == _SD_BUS_VTABLE_METHOD) == method &&
                            streq(v->type == _SD_BUS_VTABLE_METHOD ? v->x.method.member : v->x.property.member, member))
                                break;
                if (v && v->type == _SD_BUS_VTABLE_END)
                        test_fail(__FILE__, __LINE__, "%s.%s is in the gate's table and nowhere else", table[i].interface, table[i].member);
        }
}

static void test_table(void) {
        check_rows();
        check_vtable(BUS_MANAGER_INTERFACE);
        check_vtable(BUS_SESSION_INTERFACE);
        check_vtable(BUS_GRANT_INTERFACE);
        check_vtable(BUS_RECEIPT_INTERFACE);
}

/* GetAll is decided by the strictest property, so an interface has but one permission beside public. */
static void test_one_permission(void) {
        const Action *table;
        size_t n;

        table = action_table(&n);
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < i; j++)
                        if (table[i].kind == MEMBER_READ && table[j].kind == MEMBER_READ && streq(table[i].interface, table[j].interface) &&
                            table[i].permission != PERMISSION_PUBLIC && table[j].permission != PERMISSION_PUBLIC)
                                CHECK_INT(table[i].permission, table[j].permission);
}

static void check_call(sd_bus *client, const char *path, const char *interface, const char *member, const char *error) {
        Reply r = call(&w, client, path, interface, member, NULL);

        CHECK_ERROR(r, error);
        reply_done(&r);
}

static void test_unlisted(void) {
        Reply r;

        begin();
        check_call(owner, BUS_ROOT, BUS_MANAGER_INTERFACE, "Shutdown", "NotPermitted");
        check_call(owner, A1, BUS_SESSION_INTERFACE, "start", "NotPermitted");
        check_call(owner, BUS_ROOT, "org.freedesktop.DBus", "ListNames", "NotPermitted");
        check_call(owner, BUS_ROOT, "org.freedesktop.DBus.Debug.Stats", "GetStats", "NotPermitted");
        check_call(owner, BUS_ROOT, PROPERTIES, "GetSome", "NotPermitted");
        check_call(owner, BUS_ROOT, NULL, "Reload", "InvalidArgument");
        r = call(&w, owner, BUS_ROOT, PROPERTIES, "Get", "ss", BUS_MANAGER_INTERFACE, "Secret");
        CHECK_ERROR(r, "NotPermitted");
        reply_done(&r);
        r = call(&w, owner, BUS_ROOT, PROPERTIES, "Get", "ss", "", "Version");
        CHECK_ERROR(r, "NotPermitted");
        reply_done(&r);
        r = call(&w, owner, BUS_ROOT, PROPERTIES, "Set", "ssv", BUS_MANAGER_INTERFACE, "Version", "s", "2");
        CHECK_ERROR(r, "NotPermitted");
        reply_done(&r);
        r = call(&w, owner, A1, PROPERTIES, "Set", "ssv", BUS_SESSION_INTERFACE, "OwnerUid", "u", STRANGER);
        CHECK_ERROR(r, "NotPermitted");
        reply_done(&r);
        r = call(&w, owner, BUS_ROOT, PROPERTIES, "GetAll", "s", "org.freedesktop.DBus.Peer");
        CHECK_ERROR(r, "NotPermitted");
        reply_done(&r);
        r = call(&w, owner, BUS_ROOT, PROPERTIES, "Get", "i", 3);
        CHECK_ERROR(r, "InvalidArgument");
        reply_done(&r);
        CHECK_INT(w.manager->acts, 0);
        end();
}

static void test_every_member(void) {
        const Action *table;
        size_t n;

        begin_with(NULL); /* user and embedded mode */
        table = action_table(&n);
        for (size_t i = 0; i < n; i++) {
                BusObjectKind k = bus_object_kind_of(table[i].interface);
                const char *path = k == BUS_OBJECT_SESSION ? A1 : k == BUS_OBJECT_GRANT ? BUS_GRANT_ROOT "/a1/1" :
                                   k == BUS_OBJECT_RECEIPT ? BUS_RECEIPT_ROOT "/1" : BUS_ROOT;
                Reply r;

                if (table[i].permission == PERMISSION_PUBLIC)
                        continue;
                r = table[i].kind == MEMBER_SAID ? call(&w, stranger, path, table[i].interface, "Say", "s", table[i].member) :
                    table[i].kind == MEMBER_METHOD ? call(&w, stranger, path, table[i].interface, table[i].member, NULL) :
                    table[i].kind == MEMBER_READ ? call(&w, stranger, path, PROPERTIES, "Get", "ss", table[i].interface, table[i].member) :
                    call(&w, stranger, path, PROPERTIES, "Set", "ssv", table[i].interface, table[i].member, "s", "x");
                if (!streq(r.error, "org.errand1.Error.NotPermitted") && !streq(r.error, "org.errand1.Error.NotFound") &&
                    !streq(r.error, "org.errand1.Error.InvalidArgument"))
                        test_fail(__FILE__, __LINE__, "a stranger's %s.%s: %s", table[i].interface, table[i].member,
                                  r.failed ? r.error : "worked");
                reply_done(&r);
        }
        CHECK_INT(w.manager->acts, 0);
        end();
}

static void check_same(const char *path, const char *other, const char *interface, const char *member, const char *types, const char *argument,
                       const char *other_argument) {
        Reply r = call(&w, stranger, path, interface, member, types, argument, ""), s = call(&w, stranger, other, interface, member, types,
                                                                                       other_argument, "");

        /* libsystemd's own sentence repeats the path. */
        if (!r.failed || !s.failed || !streq(r.error, s.error) || (!streq(r.text, s.text) && !startswith(r.text, "Unknown object")))
                test_fail(__FILE__, __LINE__, "%s: \"%s\" is not \"%s\"", member, r.failed ? r.text : "worked", s.failed ? s.text : "worked");
        reply_done(&r);
        reply_done(&s);
}

static void test_not_yours(void) {
        Reply r;

        begin();
        r = call(&w, owner, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "example.com", "always");
        CHECK_FINE(r);
        reply_done(&r);
        fake_receipt(w.manager, "a1");
        check_same(A1, BUS_SESSION_ROOT "/zz", BUS_SESSION_INTERFACE, "Start", NULL, NULL, NULL);
        check_same(A1, BUS_SESSION_ROOT "/zz", BUS_SESSION_INTERFACE, "Describe", NULL, NULL, NULL);
        check_same(A1, BUS_SESSION_ROOT "/zz", BUS_SESSION_INTERFACE, "Grant", "ss", "example.com", "example.com");
        check_same(A1, BUS_SESSION_ROOT "/zz", PROPERTIES, "GetAll", "s", BUS_SESSION_INTERFACE, BUS_SESSION_INTERFACE);
        check_same(A1, BUS_SESSION_ROOT "/zz", "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, NULL);
        check_same(BUS_ROOT, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession", "s", "a1", "zz");
        check_same(BUS_ROOT, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession", "s", "a1", "../../../../../../../../../etc/passwd");
        check_same(BUS_ROOT, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListGrants", "s", "a1", "zz");
        check_same(BUS_GRANT_ROOT "/a1/1", BUS_GRANT_ROOT "/zz/1", BUS_GRANT_INTERFACE, "Revoke", NULL, NULL, NULL);
        check_same(BUS_GRANT_ROOT "/a1/1", BUS_GRANT_ROOT "/a1/2", BUS_GRANT_INTERFACE, "Revoke", NULL, NULL, NULL);
        check_same(BUS_GRANT_ROOT "/a1/1", BUS_GRANT_ROOT "/zz/1", "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, NULL);
        check_same(BUS_RECEIPT_ROOT "/1", BUS_RECEIPT_ROOT "/2", PROPERTIES, "GetAll", "s", BUS_RECEIPT_INTERFACE, BUS_RECEIPT_INTERFACE);
        check_same(BUS_RECEIPT_ROOT "/1", BUS_RECEIPT_ROOT "/2", "org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, NULL);
        CHECK_INT(w.manager->acts, 1);
        end();
}

static unsigned count_array(sd_bus *client, const char *member, const char *element, const char *types) {
        Reply r = call(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE, member, types, 0);
        unsigned n = 0;

        CHECK_FINE(r);
        CHECK(sd_bus_message_enter_container(r.message, 'a', element) > 0);
        while (sd_bus_message_skip(r.message, element) > 0)
                n++;
        reply_done(&r);
        return n;
}

static void test_filtered(void) {
        Reply r;
        const char *xml;

        begin();
        fake_session(w.manager, "b2", STRANGER);
        r = call(&w, owner, A1, BUS_SESSION_INTERFACE, "Grant", "ss", "example.com", "always");
        CHECK_FINE(r);
        reply_done(&r);
        fake_receipt(w.manager, "a1");
        fake_receipt(w.manager, "b2");
        CHECK_INT(count_objects(&w, owner), 3); /* two sessions and a grant; receipts are never listed */
        CHECK_INT(count_objects(&w, stranger), 1);
        CHECK_INT(count_array(owner, "ListThreads", "(sosst)", NULL), 2);
        CHECK_INT(count_array(stranger, "ListThreads", "(sosst)", NULL), 1);
        CHECK_INT(count_array(owner, "ListReceipts", "a{sv}", "a{sv}"), 2);
        CHECK_INT(count_array(stranger, "ListReceipts", "a{sv}", "a{sv}"), 1);
        r = call(&w, stranger, BUS_SESSION_ROOT, "org.freedesktop.DBus.Introspectable", "Introspect", NULL);
        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "s", &xml) > 0);
        CHECK(strstr(xml, "\"b2\"") && !strstr(xml, "\"a1\""));
        reply_done(&r);
        end();
}

static void test_wrong_object(void) {
        Reply r;

        begin();
        check_call(owner, BUS_ROOT, BUS_SESSION_INTERFACE, "Start", "NotFound");
        check_call(owner, A1, BUS_MANAGER_INTERFACE, "Reload", "NotFound");
        check_call(owner, BUS_SESSION_ROOT "/A1", BUS_SESSION_INTERFACE, "Start", "NotFound");
        check_call(owner, BUS_SESSION_ROOT "/a1/x", BUS_SESSION_INTERFACE, "Start", "NotFound");
        check_call(owner, BUS_GRANT_ROOT "/a1/01", BUS_GRANT_INTERFACE, "Revoke", "NotFound");
        check_call(owner, BUS_RECEIPT_ROOT "/18446744073709551616", BUS_RECEIPT_INTERFACE, "X", "NotPermitted");
        r = call(&w, owner, BUS_RECEIPT_ROOT "/18446744073709551615", PROPERTIES, "GetAll", "s", BUS_RECEIPT_INTERFACE);
        CHECK_ERROR(r, "NotFound");
        reply_done(&r);
        CHECK_INT(w.manager->acts, 0);
        end();
}

static void hold(Waiting *waiting) {
        begin();
        authorizer.hold = true;
        call_start(stranger, call_new(stranger, A1, BUS_SESSION_INTERFACE, "Start"), waiting);
        while (authorizer.n_held == 0)
                CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
        CHECK(!waiting->answered && w.manager->acts == 0);
        CHECK_INT(authorizer.permission, PERMISSION_CONTROL);
}

static void finish(Waiting *waiting) {
        while (!waiting->answered)
                CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
}

static void test_held_allowed(void) {
        Waiting waiting;
        Reply r;

        hold(&waiting);
        r = call(&w, stranger, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListThreads", NULL); /* nobody waits for an answer about another */
        CHECK_FINE(r);
        reply_done(&r);
        authorizer.done[0](true, authorizer.userdata[0]);
        finish(&waiting);
        CHECK_FINE(waiting.reply);
        CHECK_INT(w.manager->acts, 1);
        check_call(stranger, BUS_ROOT, BUS_SESSION_INTERFACE, "Start", "NotFound");
        waiting_done(&waiting);
        end();
}

/* It may have none; and who asks for it is answered, as is who comes after. */
static void test_machine_id(void) {
        Reply r;

        begin();
        r = call(&w, stranger, BUS_ROOT, "org.freedesktop.DBus.Peer", "GetMachineId", NULL);
        CHECK(streq(reply_error(&r), "no error") || streq(reply_error(&r), "NotFound"));
        reply_done(&r);
        r = call(&w, stranger, BUS_ROOT, "org.freedesktop.DBus.Peer", "Ping", NULL);
        CHECK_FINE(r);
        reply_done(&r);
        end();
}

/* What one account may have running is looked at for who calls, before anything is begun. */
static void test_share(void) {
        Reply r;

        begin();
        fake_session(w.manager, "b2", STRANGER);
        w.manager->full = true;
        check_call(stranger, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Start", "LimitExceeded");
        CHECK_INT(w.manager->acts, 0);
        r = call(&w, owner, BUS_SESSION_ROOT "/b2", BUS_SESSION_INTERFACE, "Start", NULL); /* an operator */
        CHECK_FINE(r);
        reply_done(&r);
        CHECK_INT(w.manager->acts, 1);
        end();
}

static void test_held_denied(void) {
        Waiting waiting;

        hold(&waiting);
        authorizer.done[0](false, authorizer.userdata[0]);
        finish(&waiting);
        CHECK_ERROR(waiting.reply, "NotFound"); /* it is still not known that it is there */
        CHECK_INT(w.manager->acts, 0);
        waiting_done(&waiting);
        end();
}

static void test_held_vanished(void) {
        Waiting waiting;

        hold(&waiting);
        waiting_done(&waiting);
        sd_bus_close(stranger);
        while (bus_connections(w.bus) > 1)
                CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
        CHECK_INT(authorizer.cancelled, 1);
        CHECK_INT(w.manager->acts, 0);
        end();
}

/* What was allowed is this session of that owner, not whatever has the name later. */
static void test_held_exchanged(void) {
        Waiting waiting;

        hold(&waiting);
        fake_forget(a1);
        fake_session(w.manager, "a1", STRANGER);
        authorizer.done[0](true, authorizer.userdata[0]);
        finish(&waiting);
        CHECK(waiting.reply.failed);
        CHECK_INT(w.manager->acts, 0);
        waiting_done(&waiting);
        end();
}

static void test_held_bounded(void) {
        Waiting waiting[TEST_CALLS];
        unsigned refused = 0;

        begin();
        authorizer.hold = true;
        for (size_t i = 0; i < TEST_CALLS; i++)
                call_start(stranger, call_new(stranger, A1, BUS_SESSION_INTERFACE, "Start"), waiting + i);
        world_settle(&w);
        for (size_t i = 0; i < TEST_CALLS; i++)
                if (waiting[i].answered) {
                        CHECK_ERROR(waiting[i].reply, "LimitExceeded");
                        refused++;
                }
        CHECK_INT(refused, TEST_CALLS - BUS_HELD_MAX);
        for (size_t i = 0; i < TEST_CALLS; i++)
                waiting_done(waiting + i);
        end();
}

static void test_same_uid(void) {
        CHECK(authorizer_peer_allowed(geteuid()) && authorizer_peer_allowed(0));
        CHECK(!authorizer_peer_allowed(geteuid() + 1) && !authorizer_peer_allowed((uid_t) -1));
        CHECK(!authorizer_peer_allowed(STRANGER) && !authorizer_peer_allowed(2147483648U));
}

int main(void) {
        RUN(test_table, "C197 D001: the gate's table has every member of a vtable, and no other");
        RUN(test_one_permission, "C197: an interface's properties need one permission");
        RUN(test_unlisted, "D001: a member that is not listed is denied, and no property is written");
        RUN(test_every_member, "C195 C197 D001: in embedded mode another account gets nothing");
        RUN(test_not_yours, "not yours and not there give the same error");
        RUN(test_filtered, "D001 D002: objects, lists and nodes are filtered for each caller");
        RUN(test_wrong_object, "a member on another kind of object, and paths of another form");
        RUN(test_machine_id, "C204: a machine without an id is no way to have errandd leave the bus");
        RUN(test_share, "C204: no account but an operator's starts more than its share");
        RUN(test_held_allowed, "C202: a held call goes on when it is allowed, and others are served meanwhile");
        RUN(test_held_denied, "a held call that is denied has no effect");
        RUN(test_held_vanished, "C194 C202: nothing starts after the client of a held call has gone");
        RUN(test_held_exchanged, "an answer is for the session that was asked about");
        RUN(test_held_bounded, "calls that wait for an answer are bounded");
        RUN(test_same_uid, "C195: the peers of the private socket are the own account and root");
        return TEST_END();
}
