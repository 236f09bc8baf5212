/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/authorizer-polkit.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-link.h"
#include "fake-polkit.h"
#include "test.h"

#define A1 BUS_SESSION_ROOT "/a1"
#define B2 BUS_SESSION_ROOT "/b2"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define OWNER_OF_B2 3

static MessageBus *b;
static FakePolkit polkit;
static Authorizer *authorizer;
static sd_bus *client;
static Session *a1, *b2; /* the client's, and another account's; each with a grant and a receipt */

static void add_grant(Session *s) {
        const char *problem;
        const Grant *g;
        GrantClock now;

        CHECK(grant_clock_now(&now) >= 0 && grant_list_add(&s->grants, "one.example.com", "always", 0, &now, &g, &problem) >= 0);
        fake_receipt(b->world.manager, s->record->id);
}

static void begin_with(char *const *operators) {
        b = message_bus_new();
        fake_polkit_begin(&polkit, b);
        CHECK(authorizer_polkit_new(b->service, operators, &authorizer) >= 0);
        a1 = fake_session(b->world.manager, "a1", message_bus_account());
        b2 = fake_session(b->world.manager, "b2", OWNER_OF_B2);
        add_grant(a1);
        add_grant(b2);
        b->world.manager->project = "theirs";
        b->world.manager->project_owner = OWNER_OF_B2;
        message_bus_serve(b, authorizer);
        message_bus_name(b);
        client = message_bus_client(b, message_bus_account());
}

static void begin(void) {
        begin_with(NULL);
}

static void end(void) {
        client = sd_bus_close_unref(client);
        b->world.bus = bus_free(b->world.bus);
        authorizer = authorizer_polkit_free(authorizer);
        if (polkit.bus)
                fake_polkit_end(&polkit);
        b = message_bus_free(b);
}

static void fill(sd_bus_message *m, const Action *a, bool own) {
        BusObjectKind k = bus_object_kind_of(a->interface);
        int r = 0;

        if (a->kind == MEMBER_READ)
                r = sd_bus_message_append(m, "ss", a->interface, a->member);
        else if (a->kind == MEMBER_WRITE)
                r = sd_bus_message_append(m, "ssv", a->interface, a->member, "s", "x");
        else if (a->permission == PERMISSION_CREATE)
                r = sd_bus_message_append(m, "a{sv}", 1, "project", "s", own ? "mine" : "theirs");
        else if (k == BUS_OBJECT_MANAGER && a->scope == SCOPE_OBJECT)
                r = sd_bus_message_append(m, "s", own ? "a1" : "b2");
        CHECK(r >= 0);
}

static sd_bus_message *call_of(const Action *a, bool own) {
        BusObjectKind k = bus_object_kind_of(a->interface);
        const char *path = k == BUS_OBJECT_SESSION ? (own ? A1 : B2) :
                           k == BUS_OBJECT_GRANT ? (own ? BUS_GRANT_ROOT "/a1/1" : BUS_GRANT_ROOT "/b2/1") :
                           k == BUS_OBJECT_RECEIPT ? (own ? BUS_RECEIPT_ROOT "/1" : BUS_RECEIPT_ROOT "/2") :
                           startswith(a->interface, "org.freedesktop.Log") ? "/org/freedesktop/LogControl1" : BUS_ROOT;
        sd_bus_message *m;

        if (a->kind == MEMBER_METHOD)
                m = call_new(client, path, a->interface, a->member);
        else
                m = call_new(client, path, PROPERTIES, a->kind == MEMBER_READ ? "Get" : "Set");
        fill(m, a, own);
        return m;
}

static bool is_refusal(const Reply *r) {
        return streq(reply_error(r), "NotPermitted") || streq(reply_error(r), "NotFound");
}

/* What it is allowed to do fails a step later: nothing changes for the next one. */
static void check_member(const Action *a, bool own, bool allowed) {
        unsigned acts = b->world.manager->acts, asked = polkit.asked;
        const char *name;
        Reply r;

        if (a->permission == PERMISSION_ROOT)
                allowed = false; /* whatever polkit says, since it is not asked */
        b->world.manager->fail = (Fault){.code = ERROR_WRONG_STATE, .text = strdup("not now")};
        r = call_send(&b->world, client, call_of(a, own));
        fault_done(&b->world.manager->fail);
        if (is_refusal(&r) == allowed)
                test_fail(__FILE__, __LINE__, "%s.%s, %s: %s", a->interface, a->member, own ? "own" : "others", reply_error(&r));
        if (!allowed)
                CHECK_INT(b->world.manager->acts, acts);
        reply_done(&r);
        CHECK_INT(polkit.asked, asked + (polkit.bus && a->permission != PERMISSION_ROOT));
        if (polkit.asked == asked)
                return;
        CHECK(sd_bus_get_unique_name(client, &name) >= 0);
        CHECK_STR(polkit.kind, "system-bus-name");
        CHECK_STR(polkit.name, name);
        CHECK_STR(polkit.action, permission_action_id(a->permission, own));
        CHECK_INT(polkit.flags, 0);
        CHECK(*polkit.cancellation);
}

static void check_every_member(bool allowed) {
        const Action *table;
        size_t n;

        table = action_table(&n);
        for (size_t i = 0; i < n; i++) {
                if (table[i].permission == PERMISSION_PUBLIC)
                        continue;
                check_member(table + i, true, allowed);
                if (table[i].scope == SCOPE_OBJECT)
                        check_member(table + i, false, allowed);
        }
}

static void check_answer(FakeAnswer answer, bool allowed) {
        begin();
        polkit.answer = answer;
        check_every_member(allowed);
        end();
}

static void test_denied(void) {
        check_answer(POLKIT_NO, false);
        check_answer(POLKIT_CHALLENGE, false);
}

static void test_allowed(void) {
        check_answer(POLKIT_YES, true);
}

static void test_broken(void) {
        check_answer(POLKIT_ERROR, false);
        check_answer(POLKIT_NONSENSE, false);
}

/* As many at once as an account may ask. */
static void check_hanging(const Action *const actions[], size_t n) {
        static Waiting waiting[BUS_ACCOUNT_HELD_MAX];
        unsigned asked = polkit.asked;

        polkit.cancelled = 0;
        for (size_t i = 0; i < n; i++)
                call_start(client, call_of(actions[i], actions[i]->scope != SCOPE_OBJECT), waiting + i);
        for (size_t i = 0; i < n; i++) {
                while (!waiting[i].answered)
                        CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
                if (!is_refusal(&waiting[i].reply))
                        test_fail(__FILE__, __LINE__, "%s.%s: %s", actions[i]->interface, actions[i]->member, reply_error(&waiting[i].reply));
                waiting_done(waiting + i);
        }
        while (polkit.cancelled < n) /* the questions are withdrawn */
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_INT(polkit.asked, asked + n);
        fake_polkit_answer(&polkit, true); /* too late */
}

static void test_hanging(void) {
        const Action *table, *batch[BUS_ACCOUNT_HELD_MAX];
        size_t n, k = 0;

        begin();
        polkit.answer = POLKIT_HANG;
        authorizer_polkit_set_timeouts(authorizer, 10 * USEC_PER_MSEC, USEC_INFINITY);
        table = action_table(&n);
        check_member(action_find(BUS_MANAGER_INTERFACE, "Reload", MEMBER_METHOD), true, false); /* its uid is known now */
        fake_polkit_answer(&polkit, true);
        for (size_t i = 0; i < n; i++) {
                if (permission_action_id(table[i].permission, true))
                        batch[k++] = table + i;
                if (k == BUS_ACCOUNT_HELD_MAX || (i == n - 1 && k > 0)) {
                        check_hanging(batch, k);
                        k = 0;
                }
        }
        message_bus_settle(b, b->service);
        CHECK_INT(b->world.manager->acts, 0);
        end();
}

static void test_absent(void) {
        begin();
        fake_polkit_end(&polkit);
        check_every_member(false);
        fake_polkit_begin(&polkit, b);
        polkit.answer = POLKIT_YES;
        check_every_member(true); /* it is back */
        end();
}

static void start(Waiting *waiting, sd_bus *from, bool interactive) {
        sd_bus_message *m = call_new(from, B2, BUS_SESSION_INTERFACE, "Start");
        unsigned asked = polkit.asked;

        polkit.answer = POLKIT_HANG;
        CHECK(sd_bus_message_set_allow_interactive_authorization(m, interactive) >= 0);
        call_start(from, m, waiting);
        while (polkit.asked == asked)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
}

static void finish(Waiting *waiting, const char *error) {
        while (!waiting->answered)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_ERROR(waiting->reply, error);
        waiting_done(waiting);
}

static void test_restarted(void) {
        Waiting waiting;

        begin();
        start(&waiting, client, false);
        fake_polkit_end(&polkit);
        finish(&waiting, "NotFound");
        CHECK_INT(b->world.manager->acts, 0);
        fake_polkit_begin(&polkit, b);
        start(&waiting, client, false);
        fake_polkit_answer(&polkit, true);
        finish(&waiting, "no error");
        CHECK_INT(b->world.manager->acts, 1);
        end();
}

static void test_client_gone(void) {
        Waiting waiting;

        begin();
        start(&waiting, client, true);
        waiting_done(&waiting);
        client = sd_bus_close_unref(client);
        while (polkit.cancelled == 0)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        CHECK_STR(polkit.last_cancelled, polkit.cancellation);
        CHECK_INT(bus_connections(b->world.bus), 0);
        fake_polkit_answer(&polkit, true);
        message_bus_settle(b, b->service);
        CHECK_INT(b->world.manager->acts, 0);
        end();
}

/* Somebody types a password while a question that nobody is asked would be over long ago; another is served meanwhile. */
static void test_password(void) {
        Waiting slow, quick;

        begin();
        authorizer_polkit_set_timeouts(authorizer, 20 * USEC_PER_MSEC, 60 * USEC_PER_SEC);
        start(&slow, client, true);
        CHECK_INT(polkit.flags, 1);
        start(&quick, client, false);
        CHECK_INT(polkit.flags, 0);
        finish(&quick, "NotFound");
        CHECK(!slow.answered);
        fake_polkit_answer(&polkit, true);
        finish(&slow, "no error");
        CHECK_INT(b->world.manager->acts, 1);

        authorizer_polkit_set_timeouts(authorizer, 60 * USEC_PER_SEC, 20 * USEC_PER_MSEC);
        start(&slow, client, true);
        finish(&slow, "NotFound"); /* nobody typed anything */
        CHECK_INT(b->world.manager->acts, 1);
        end();
}

static void check_details(const Reply *r, const char *details) {
        CHECK(!is_refusal(r));
        CHECK_STR(polkit.details, details);
}

static void test_details(void) {
        Reply r;

        begin();
        polkit.answer = POLKIT_YES;
        b2->record->project = (free(b2->record->project), strdup("web"));
        r = call(&b->world, client, B2, BUS_SESSION_INTERFACE, "Grant", "ss", "Api.Example.com", "1h 30m");
        check_details(&r, "member=Grant;session=b2;host=Api.Example.com;duration=1h 30m;project=web;");
        reply_done(&r);
        r = call(&b->world, client, B2, BUS_SESSION_INTERFACE, "Grant", "ss", "<b>x</b>\n$(session) \xc3\xa9", "always");
        check_details(&r, "member=Grant;session=b2;host=?b?x?/b????session? ??;duration=always;project=web;");
        reply_done(&r);
        r = call(&b->world, client, BUS_GRANT_ROOT "/b2/1", BUS_GRANT_INTERFACE, "Revoke", NULL);
        check_details(&r, "member=Revoke;session=b2;host=one.example.com;duration=always;project=web;");
        reply_done(&r);
        r = call(&b->world, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", 2, "interactive", "b", 1, "project", "s", "shop");
        check_details(&r, "member=CreateSession;project=shop;");
        reply_done(&r);
        r = call(&b->world, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", 0);
        check_details(&r, "member=CreateSession;project=-;");
        reply_done(&r);
        r = call(&b->world, client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", NULL);
        check_details(&r, "member=Reload;");
        reply_done(&r);
        end();
}

static void check_asked(sd_bus *from, const char *path, const char *interface, const char *member, const char *action) {
        unsigned asked = polkit.asked;
        sd_bus_message *m = call_new(from, path, interface, member);
        Reply r;

        if (streq(member, "CreateSession"))
                CHECK(sd_bus_message_append(m, "a{sv}", 1, "project", "s", "theirs") >= 0);
        r = call_send(&b->world, from, m);
        if (action) {
                CHECK_INT(polkit.asked, asked + 1);
                CHECK_STR(polkit.action, action);
                CHECK_ERROR(r, "NotPermitted");
        } else {
                CHECK_INT(polkit.asked, asked);
                CHECK_FINE(r);
        }
        reply_done(&r);
}

static void test_operator(void) {
        char number[16];
        char *operators[] = {(char *) "no-such-account", number, NULL};

        (void) snprintf(number, sizeof(number), "%u", (unsigned) message_bus_account());
        begin_with(operators);
        check_asked(client, B2, BUS_SESSION_INTERFACE, "Describe", NULL);
        check_asked(client, B2, BUS_SESSION_INTERFACE, "Start", NULL);
        check_asked(client, BUS_GRANT_ROOT "/b2/1", BUS_GRANT_INTERFACE, "Revoke", NULL);
        check_asked(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "org.errand1.create-session");
        check_asked(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", "org.errand1.manage-daemon");
        CHECK(authorizer_polkit_set_operators(authorizer, NULL) >= 0);
        check_asked(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "org.errand1.create-others");
        CHECK(authorizer_polkit_set_operators(authorizer, (char *[]) {(char *) "root", NULL}) >= 0);
        check_asked(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", "org.errand1.manage-daemon");
        end();
}

/* uid 0 by the bus daemon's word, and by no other: a connection without a unique name is asked about nobody. */
static void test_root(void) {
        void *ticket;

        begin();
        if (geteuid() == 0) {
                sd_bus *root = message_bus_client(b, 0);

                check_asked(root, B2, BUS_SESSION_INTERFACE, "Start", NULL);
                check_asked(root, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", NULL);
                sd_bus_close_unref(root);
        }
        CHECK_INT(authorizer->check(authorizer, &(AuthorizeRequest){.uid = 0, .permission = PERMISSION_MANAGE, .own = true}, NULL, NULL, &ticket), 1);
        CHECK_INT(authorizer->check(authorizer, &(AuthorizeRequest){.uid = 0, .permission = PERMISSION_ROOT, .own = true}, NULL, NULL, &ticket), 1);
        CHECK_INT(authorizer->check(authorizer, &(AuthorizeRequest){.uid = 1, .permission = PERMISSION_ROOT, .own = true}, NULL, NULL, &ticket), 0);
        CHECK_INT(authorizer->check(authorizer, &(AuthorizeRequest){.uid = 1, .permission = PERMISSION_READ, .own = true}, NULL, NULL, &ticket), 0);
        CHECK_INT(authorizer->check(authorizer, &(AuthorizeRequest){.uid = (uid_t) -1, .permission = PERMISSION_READ, .own = true}, NULL, NULL, &ticket), 0);
        CHECK_INT(authorizer->check(authorizer, &(AuthorizeRequest){.uid = 0, .permission = PERMISSION_PUBLIC, .own = true}, NULL, NULL, &ticket), 0);
        CHECK(!authorizer->operator(authorizer, STRANGER) && !authorizer->operator(authorizer, 4294967295U));
        end();
}

/* An account's questions are bounded over all of its connections, so that polkit is not flooded either. */
static void test_bounded(void) {
        static Waiting waiting[BUS_ACCOUNT_HELD_MAX + 1];
        sd_bus *second;

        begin();
        second = message_bus_client(b, message_bus_account());
        for (size_t i = 0; i < BUS_ACCOUNT_HELD_MAX; i++)
                start(waiting + i, i % 2 ? second : client, true);
        call_start(second, call_new(second, B2, BUS_SESSION_INTERFACE, "Start"), waiting + BUS_ACCOUNT_HELD_MAX);
        finish(waiting + BUS_ACCOUNT_HELD_MAX, "LimitExceeded");
        CHECK_INT(polkit.asked, BUS_ACCOUNT_HELD_MAX);
        fake_polkit_answer(&polkit, false);
        for (size_t i = 0; i < BUS_ACCOUNT_HELD_MAX; i++)
                finish(waiting + i, "NotFound");
        CHECK_INT(b->world.bus->held_size, 0);
        sd_bus_close_unref(second);
        end();
}

static void test_daemon_ends(void) {
        Waiting waiting;

        begin();
        start(&waiting, client, true);
        b->world.bus = bus_free(b->world.bus);
        while (polkit.cancelled == 0)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        authorizer = authorizer_polkit_free(authorizer);
        waiting_done(&waiting);
        CHECK_INT(b->world.manager->acts, 0);
        end();
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_ERROR); /* every no of a broken polkit is a warning */
        RUN(test_denied, "C193 C197 D001: every member is asked about by the caller's unique name, and denied");
        RUN(test_allowed, "D001: every member, allowed");
        RUN(test_broken, "C194: an error of polkit's, or what is no answer, is a no");
        RUN(test_hanging, "C202: a polkit that says nothing is a no after its time, and a late yes is too late");
        RUN(test_absent, "C194: no polkit is a no, for as long as there is none");
        RUN(test_restarted, "C194: a polkit that ends meanwhile is a no");
        RUN(test_client_gone, "C194 C202: nothing starts after the client has gone, and its question is withdrawn");
        RUN(test_password, "C202 C203: only a caller that allows it has somebody asked, and longer");
        RUN(test_details, "the question says what is asked, and nothing that a dialog would take for markup");
        RUN(test_operator, "an operator is owner of everything, and asked about like others for the rest");
        RUN(test_root, "C195: uid 0 passes unasked, no uid and no name do not");
        RUN(test_bounded, "questions of one account are bounded");
        RUN(test_daemon_ends, "a question is withdrawn when errandd ends");
        return TEST_END();
}
