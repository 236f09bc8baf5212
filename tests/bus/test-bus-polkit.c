/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-link.h"
#include "polkit-world.h"
#include "test.h"

#define A1 BUS_SESSION_ROOT "/a1"
#define B2 BUS_SESSION_ROOT "/b2"
#define PROPERTIES "org.freedesktop.DBus.Properties"

static PolkitWorld w;

static void begin(void) {
        polkit_world_begin(&w, NULL);
}

static void end(void) {
        polkit_world_end(&w);
}

static void fill(sd_bus_message *m, const Action *a, bool own) {
        BusObjectKind k = bus_object_kind_of(a->interface);
        int r = 0;

        if (a->kind == MEMBER_READ)
                r = sd_bus_message_append(m, "ss", a->interface, a->member);
        else if (a->kind == MEMBER_WRITE)
                r = sd_bus_message_append(m, "ssv", a->interface, a->member, "s", "x");
        else if (a->kind == MEMBER_SAID || streq(a->member, "Say") || streq(a->member, "Prompt"))
                r = sd_bus_message_append(m, "s", streq(a->member, "!grant") ? "!grant api.example.com 10m" : streq(a->member, "!revoke") ? "!revoke one.example.com" :
                                                  streq(a->member, "!answer") ? "!answer yes" : a->member);
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

        if (a->kind == MEMBER_METHOD || a->kind == MEMBER_SAID)
                m = call_new(w.client, path, a->interface, a->kind == MEMBER_SAID ? "Say" : a->member);
        else
                m = call_new(w.client, path, PROPERTIES, a->kind == MEMBER_READ ? "Get" : "Set");
        fill(m, a, own);
        return m;
}

static bool is_refusal(const Reply *r) {
        return streq(reply_error(r), "NotPermitted") || streq(reply_error(r), "NotFound");
}

/* What it is allowed to do fails a step later: nothing changes for the next one. */
static void check_member(const Action *a, bool own, bool allowed) {
        unsigned acts = w.bus->world.manager->acts, asked = w.polkit.asked;
        const char *name;
        Reply r;

        if (a->permission == PERMISSION_ROOT)
                allowed = false; /* whatever polkit says, since it is not asked */
        w.bus->world.manager->fail = (Fault){.code = ERROR_WRONG_STATE, .text = strdup("not now")};
        r = call_send(&w.bus->world, w.client, call_of(a, own));
        fault_done(&w.bus->world.manager->fail);
        if (is_refusal(&r) == allowed)
                test_fail(__FILE__, __LINE__, "%s.%s, %s: %s", a->interface, a->member, own ? "own" : "others", reply_error(&r));
        if (!allowed)
                CHECK_INT(w.bus->world.manager->acts, acts);
        reply_done(&r);
        CHECK_INT(w.polkit.asked, asked + (w.polkit.bus && a->permission != PERMISSION_ROOT));
        if (w.polkit.asked == asked)
                return;
        CHECK(sd_bus_get_unique_name(w.client, &name) >= 0);
        CHECK_STR(w.polkit.kind, "system-bus-name");
        CHECK_STR(w.polkit.name, name);
        CHECK_STR(w.polkit.action, permission_action_id(a->permission, own));
        CHECK_INT(w.polkit.flags, 0);
        CHECK(*w.polkit.cancellation);
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
        w.polkit.answer = answer;
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
        unsigned asked = w.polkit.asked;

        w.polkit.cancelled = 0;
        for (size_t i = 0; i < n; i++)
                call_start(w.client, call_of(actions[i], actions[i]->scope != SCOPE_OBJECT), waiting + i);
        for (size_t i = 0; i < n; i++) {
                while (!waiting[i].answered)
                        CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
                if (!is_refusal(&waiting[i].reply))
                        test_fail(__FILE__, __LINE__, "%s.%s: %s", actions[i]->interface, actions[i]->member, reply_error(&waiting[i].reply));
                waiting_done(waiting + i);
        }
        while (w.polkit.cancelled < n) /* the questions are withdrawn */
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
        CHECK_INT(w.polkit.asked, asked + n);
        fake_polkit_answer(&w.polkit, true); /* too late */
}

static void test_hanging(void) {
        const Action *table, *batch[BUS_ACCOUNT_HELD_MAX];
        size_t n, k = 0;

        begin();
        w.polkit.answer = POLKIT_HANG;
        authorizer_polkit_set_timeouts(w.authorizer, 10 * USEC_PER_MSEC, USEC_INFINITY);
        table = action_table(&n);
        check_member(action_find(BUS_MANAGER_INTERFACE, "Reload", MEMBER_METHOD), true, false); /* its uid is known now */
        fake_polkit_answer(&w.polkit, true);
        for (size_t i = 0; i < n; i++) {
                if (permission_action_id(table[i].permission, true))
                        batch[k++] = table + i;
                if (k == BUS_ACCOUNT_HELD_MAX || (i == n - 1 && k > 0)) {
                        check_hanging(batch, k);
                        k = 0;
                }
        }
        message_bus_settle(w.bus, w.bus->service);
        CHECK_INT(w.bus->world.manager->acts, 0);
        end();
}

/* Whether the refusal says so, which else names who has the action. */
static void check_said(const char *words, bool said) {
        Waiting waiting = {};

        call_start(w.client, call_new(w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload"), &waiting);
        while (!waiting.answered)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
        CHECK(is_refusal(&waiting.reply));
        CHECK_INT(strstr(waiting.reply.text, words) != NULL, said);
        waiting_done(&waiting);
}

static void test_absent(void) {
        begin();
        fake_polkit_end(&w.polkit);
        check_every_member(false);
        check_said("gave no answer", true);
        fake_polkit_begin(&w.polkit, w.bus);
        w.polkit.answer = POLKIT_NO;
        check_said("gave no answer", false);
        w.polkit.answer = POLKIT_YES;
        check_every_member(true); /* it is back */
        end();
}

static void start(Waiting *waiting, sd_bus *from, bool interactive) {
        sd_bus_message *m = call_new(from, B2, BUS_SESSION_INTERFACE, "Start");
        unsigned asked = w.polkit.asked;

        w.polkit.answer = POLKIT_HANG;
        CHECK(sd_bus_message_set_allow_interactive_authorization(m, interactive) >= 0);
        call_start(from, m, waiting);
        while (w.polkit.asked == asked)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
}

/* As many as an account may have. */
static void start_all(Waiting waiting[static BUS_ACCOUNT_HELD_MAX]) {
        for (size_t i = 0; i < BUS_ACCOUNT_HELD_MAX; i++)
                start(waiting + i, w.client, false);
}

/* Their caller goes, and polkit hears that nobody waits for them. */
static void leave_all(Waiting waiting[static BUS_ACCOUNT_HELD_MAX]) {
        for (size_t i = 0; i < BUS_ACCOUNT_HELD_MAX; i++)
                waiting_done(waiting + i);
        w.client = sd_bus_close_unref(w.client);
        while (w.polkit.cancelled < BUS_ACCOUNT_HELD_MAX)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
}

static void finish(Waiting *waiting, const char *error) {
        while (!waiting->answered)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
        CHECK_ERROR(waiting->reply, error);
        waiting_done(waiting);
}

static void test_restarted(void) {
        Waiting waiting;

        begin();
        start(&waiting, w.client, false);
        fake_polkit_end(&w.polkit);
        finish(&waiting, "NotFound");
        CHECK_INT(w.bus->world.manager->acts, 0);
        fake_polkit_begin(&w.polkit, w.bus);
        start(&waiting, w.client, false);
        fake_polkit_answer(&w.polkit, true);
        finish(&waiting, "no error");
        CHECK_INT(w.bus->world.manager->acts, 1);
        end();
}

static void test_client_gone(void) {
        Waiting waiting;

        begin();
        start(&waiting, w.client, true);
        waiting_done(&waiting);
        w.client = sd_bus_close_unref(w.client);
        while (w.polkit.cancelled == 0)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
        CHECK_STR(w.polkit.last_cancelled, w.polkit.cancellation);
        CHECK_INT(bus_connections(w.bus->world.bus), 0);
        fake_polkit_answer(&w.polkit, true);
        message_bus_settle(w.bus, w.bus->service);
        CHECK_INT(w.bus->world.manager->acts, 0);
        end();
}

/* Somebody types a password while a question that nobody is asked would be over long ago; another is served meanwhile. */
static void test_password(void) {
        Waiting slow, quick;

        begin();
        authorizer_polkit_set_timeouts(w.authorizer, 20 * USEC_PER_MSEC, 60 * USEC_PER_SEC);
        start(&slow, w.client, true);
        CHECK_INT(w.polkit.flags, 1);
        start(&quick, w.client, false);
        CHECK_INT(w.polkit.flags, 0);
        finish(&quick, "NotFound");
        CHECK(!slow.answered);
        fake_polkit_answer(&w.polkit, true);
        finish(&slow, "no error");
        CHECK_INT(w.bus->world.manager->acts, 1);

        authorizer_polkit_set_timeouts(w.authorizer, 60 * USEC_PER_SEC, 20 * USEC_PER_MSEC);
        start(&slow, w.client, true);
        finish(&slow, "NotFound"); /* nobody typed anything */
        CHECK_INT(w.bus->world.manager->acts, 1);
        end();
}

static void check_details(const Reply *r, const char *details) {
        CHECK(!is_refusal(r));
        CHECK_STR(w.polkit.details, details);
}

#define LABEL "a123456789b123456789c123456789d123456789e123456789"
#define LONG_NAME LABEL "." LABEL "." LABEL "." LABEL

static void test_details(void) {
        Reply r;

        begin();
        w.polkit.answer = POLKIT_YES;
        w.b2->record->project = (free(w.b2->record->project), strdup("web"));
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Grant", "ss", "Api.Example.com.", "90m");
        check_details(&r, "member=Grant;session=b2;host=api.example.com;duration=1h 30m;project=web;");
        reply_done(&r);
        /* Whose a host is its end says. */
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Say", "s", "!grant api.example.com." LONG_NAME ".Example.org  1s");
        check_details(&r, "member=!grant;session=b2;host=api.example.com." LONG_NAME ".example.org;duration=1s;project=web;");
        reply_done(&r);
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Grant", "ss", "<b>x</b>\n$(session) \xc3\xa9", "always");
        check_details(&r, "member=Grant;session=b2;host=?b?x?/b????session? ??;duration=always;project=web;");
        reply_done(&r);
        r = call(&w.bus->world, w.client, BUS_GRANT_ROOT "/b2/1", BUS_GRANT_INTERFACE, "Revoke", NULL);
        check_details(&r, "member=Revoke;session=b2;host=one.example.com;duration=always;project=web;");
        reply_done(&r);
        /* What is said in the thread is asked about as the same thing done otherwise. */
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Say", "s", "!grant <b>api.example.com  1h\n30m ");
        check_details(&r, "member=!grant;session=b2;host=?b?api.example.com;duration=1h?30m;project=web;");
        reply_done(&r);
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Say", "s", "!grant api.example.com");
        check_details(&r, "member=!grant;session=b2;host=api.example.com;duration=once;project=web;");
        reply_done(&r);
        strcpy(w.polkit.details, "none");
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Say", "s", "!grant");
        CHECK_STR(w.polkit.details, "none");
        /* Written wrongly it is nobody's, and nobody is asked. */
        CHECK(strstr(r.error, "InvalidArgument") && strstr(r.text, "!grant is written: !grant HOST"));
        reply_done(&r);
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Say", "s", "!revoke api.example.com");
        check_details(&r, "member=!revoke;session=b2;host=api.example.com;duration=-;project=web;");
        reply_done(&r);
        r = call(&w.bus->world, w.client, B2, BUS_SESSION_INTERFACE, "Say", "s", "do $(session) <b>");
        check_details(&r, "member=Say;session=b2;project=web;");
        reply_done(&r);
        r = call(&w.bus->world, w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", 2, "interactive", "b", 1, "project", "s", "shop");
        check_details(&r, "member=CreateSession;project=shop;");
        reply_done(&r);
        r = call(&w.bus->world, w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "a{sv}", 0);
        check_details(&r, "member=CreateSession;project=-;");
        reply_done(&r);
        r = call(&w.bus->world, w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", NULL);
        check_details(&r, "member=Reload;");
        reply_done(&r);
        end();
}

static void check_asked(sd_bus *from, const char *path, const char *interface, const char *member, const char *action) {
        unsigned asked = w.polkit.asked;
        sd_bus_message *m = call_new(from, path, interface, member);
        Reply r;

        if (streq(member, "CreateSession"))
                CHECK(sd_bus_message_append(m, "a{sv}", 1, "project", "s", "theirs") >= 0);
        r = call_send(&w.bus->world, from, m);
        if (action) {
                CHECK_INT(w.polkit.asked, asked + 1);
                CHECK_STR(w.polkit.action, action);
                CHECK_ERROR(r, "NotPermitted");
        } else {
                CHECK_INT(w.polkit.asked, asked);
                CHECK_FINE(r);
        }
        reply_done(&r);
}

static void test_operator(void) {
        char number[16];
        char *operators[] = {(char *) "no-such-account", number, NULL};

        (void) snprintf(number, sizeof(number), "%u", (unsigned) message_bus_account());
        polkit_world_begin(&w, operators);
        check_asked(w.client, B2, BUS_SESSION_INTERFACE, "Describe", NULL);
        check_asked(w.client, B2, BUS_SESSION_INTERFACE, "Start", NULL);
        check_asked(w.client, BUS_GRANT_ROOT "/b2/1", BUS_GRANT_INTERFACE, "Revoke", NULL);
        check_asked(w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "org.errand1.create-session");
        check_asked(w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", "org.errand1.manage-daemon");
        CHECK(authorizer_polkit_set_operators(w.authorizer, NULL) >= 0);
        check_asked(w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", "org.errand1.create-others");
        CHECK(authorizer_polkit_set_operators(w.authorizer, (char *[]) {(char *) "root", NULL}) >= 0);
        check_asked(w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", "org.errand1.manage-daemon");
        end();
}

/* uid 0 by the bus daemon's word, and by no other: a connection without a unique name is asked about nobody. */
static void test_root(void) {
        void *ticket;

        begin();
        if (geteuid() == 0) {
                sd_bus *root = message_bus_client(w.bus, 0);

                check_asked(root, B2, BUS_SESSION_INTERFACE, "Start", NULL);
                check_asked(root, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", NULL);
                sd_bus_close_unref(root);
        }
        CHECK_INT(w.authorizer->check(w.authorizer, &(AuthorizeRequest){.uid = 0, .permission = PERMISSION_MANAGE, .own = true}, NULL, NULL, &ticket), 1);
        CHECK_INT(w.authorizer->check(w.authorizer, &(AuthorizeRequest){.uid = 0, .permission = PERMISSION_ROOT, .own = true}, NULL, NULL, &ticket), 1);
        CHECK_INT(w.authorizer->check(w.authorizer, &(AuthorizeRequest){.uid = 1, .permission = PERMISSION_ROOT, .own = true}, NULL, NULL, &ticket), 0);
        CHECK_INT(w.authorizer->check(w.authorizer, &(AuthorizeRequest){.uid = 1, .permission = PERMISSION_READ, .own = true}, NULL, NULL, &ticket), 0);
        CHECK_INT(w.authorizer->check(w.authorizer, &(AuthorizeRequest){.uid = (uid_t) -1, .permission = PERMISSION_READ, .own = true}, NULL, NULL, &ticket), 0);
        CHECK_INT(w.authorizer->check(w.authorizer, &(AuthorizeRequest){.uid = 0, .permission = PERMISSION_PUBLIC, .own = true}, NULL, NULL, &ticket), 0);
        CHECK(!w.authorizer->operator(w.authorizer, STRANGER) && !w.authorizer->operator(w.authorizer, 4294967295U));
        end();
}

/* An account's questions are bounded over all of its connections, so that polkit is not flooded either. */
static void test_bounded(void) {
        static Waiting waiting[BUS_ACCOUNT_HELD_MAX + 1];
        sd_bus *second;

        begin();
        second = message_bus_client(w.bus, message_bus_account());
        for (size_t i = 0; i < BUS_ACCOUNT_HELD_MAX; i++)
                start(waiting + i, i % 2 ? second : w.client, true);
        call_start(second, call_new(second, B2, BUS_SESSION_INTERFACE, "Start"), waiting + BUS_ACCOUNT_HELD_MAX);
        finish(waiting + BUS_ACCOUNT_HELD_MAX, "LimitExceeded");
        CHECK_INT(w.polkit.asked, BUS_ACCOUNT_HELD_MAX);
        fake_polkit_answer(&w.polkit, false);
        for (size_t i = 0; i < BUS_ACCOUNT_HELD_MAX; i++)
                finish(waiting + i, "NotFound");
        CHECK_INT(w.bus->world.bus->held_size, 0);
        sd_bus_close_unref(second);
        end();
}

/* Of one that comes back again and again polkit has no more questions than of one that stays. */
static void test_returning(void) {
        Waiting waiting[BUS_ACCOUNT_HELD_MAX], again;
        sd_bus *other;

        begin();
        w.bus->world.bus->delay_usec = 10 * USEC_PER_MSEC;
        start_all(waiting);
        leave_all(waiting);
        w.client = message_bus_client(w.bus, message_bus_account());
        call_start(w.client, call_new(w.client, B2, BUS_SESSION_INTERFACE, "Start"), &again);
        finish(&again, "LimitExceeded");
        CHECK_INT(w.polkit.asked, BUS_ACCOUNT_HELD_MAX);
        if (message_bus_stranger() != message_bus_account()) {
                other = message_bus_client(w.bus, message_bus_stranger());
                start(&again, other, false);
                waiting_done(&again);
                sd_bus_close_unref(other);
        }
        fake_polkit_answer(&w.polkit, true);
        message_bus_settle(w.bus, w.bus->service);
        CHECK_INT(w.bus->world.manager->acts, 0);
        start(&again, w.client, false);
        fake_polkit_answer(&w.polkit, false);
        finish(&again, "NotFound");
        end();
}

/* When polkit has answered them the calls that wait for that come through, and not when their time is over. */
static void test_settled(void) {
        Waiting waiting[BUS_ACCOUNT_HELD_MAX], second;
        sd_bus *other;

        begin();
        w.bus->world.bus->delay_usec = 3600 * USEC_PER_SEC;
        other = message_bus_client(w.bus, message_bus_account());
        start_all(waiting);
        call_start(other, call_new(other, B2, BUS_SESSION_INTERFACE, "Start"), &second);
        message_bus_settle(w.bus, other);
        leave_all(waiting);
        message_bus_settle(w.bus, other);
        CHECK_INT(w.polkit.asked, BUS_ACCOUNT_HELD_MAX);
        fake_polkit_answer(&w.polkit, true);
        for (unsigned i = 0; i < 2; i++) { /* the answers have come, and the next question as well */
                message_bus_settle(w.bus, i == 0 ? w.polkit.bus : w.bus->service);
                message_bus_settle(w.bus, i == 0 ? w.bus->service : w.polkit.bus);
        }
        CHECK_INT(w.polkit.asked, BUS_ACCOUNT_HELD_MAX + 1);
        fake_polkit_answer(&w.polkit, false);
        finish(&second, "NotFound");
        sd_bus_close_unref(other);
        end();
}

/* One that polkit never answered is a no for its caller, and the bus daemon still waits for it. */
static void test_timed_out(void) {
        Waiting waiting[BUS_ACCOUNT_HELD_MAX], again;

        begin();
        w.bus->world.bus->delay_usec = 10 * USEC_PER_MSEC;
        authorizer_polkit_set_timeouts(w.authorizer, 10 * USEC_PER_MSEC, USEC_INFINITY);
        start_all(waiting);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                finish(waiting + i, "NotFound");
        call_start(w.client, call_new(w.client, B2, BUS_SESSION_INTERFACE, "Start"), &again);
        finish(&again, "LimitExceeded");
        CHECK_INT(w.polkit.asked, ELEMENTSOF(waiting));
        fake_polkit_answer(&w.polkit, true);
        message_bus_settle(w.bus, w.polkit.bus);
        message_bus_settle(w.bus, w.bus->service);
        CHECK_INT(w.bus->world.manager->acts, 0);
        authorizer_polkit_set_timeouts(w.authorizer, USEC_INFINITY, USEC_INFINITY);
        start(&again, w.client, false);
        fake_polkit_answer(&w.polkit, true);
        finish(&again, "no error");
        end();
}

/* However many accounts ask, polkit has no more questions than leave errandd its other calls, and one that has none yet is asked about. */
static void test_all(void) {
        void *tickets[AUTHORIZE_FIRST_MAX];
        AuthorizeRequest q = {.permission = PERMISSION_READ, .own = true, .sender = ":1.1"};

        begin();
        for (unsigned i = 0; i < AUTHORIZE_FIRST_MAX; i++) {
                q.uid = 70000 + i / 8;
                CHECK_INT(w.authorizer->is_busy(w.authorizer, q.uid), i >= AUTHORIZE_ALL_MAX && i % 8 > 0);
                CHECK_INT(w.authorizer->check(w.authorizer, &q, NULL, NULL, tickets + i), -EINPROGRESS);
        }
        CHECK(w.authorizer->is_busy(w.authorizer, 80000));
        for (unsigned i = 0; i < AUTHORIZE_FIRST_MAX; i++)
                w.authorizer->cancel(w.authorizer, tickets[i]);
        CHECK(w.authorizer->is_busy(w.authorizer, 80000));
        while (w.polkit.cancelled < AUTHORIZE_FIRST_MAX)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
        fake_polkit_answer(&w.polkit, true);
        message_bus_settle(w.bus, w.polkit.bus);
        message_bus_settle(w.bus, w.bus->service);
        CHECK(!w.authorizer->is_busy(w.authorizer, 70000));
        end();
}

/* The place of a question that is over goes to the next call that needs one, where the first does not any more. */
static void test_passed_on(void) {
        static Waiting waiting[BUS_ACCOUNT_HELD_MAX + 2];
        Waiting *over = waiting + BUS_ACCOUNT_HELD_MAX;
        size_t n_held;

        begin();
        w.bus->world.bus->delay_usec = USEC_PER_SEC * 3600;
        start_all(waiting);
        call_start(w.client, call_new(w.client, A1, BUS_SESSION_INTERFACE, "Start"), over);
        call_start(w.client, call_new(w.client, B2, BUS_SESSION_INTERFACE, "Start"), over + 1);
        message_bus_settle(w.bus, w.client);
        CHECK_INT(w.polkit.asked, BUS_ACCOUNT_HELD_MAX);
        fake_forget(manager_find(w.bus->world.manager, "a1"));
        n_held = w.polkit.n_held;
        w.polkit.n_held = 1;
        fake_polkit_answer(&w.polkit, false);
        w.polkit.n_held = n_held - 1;
        memmove(w.polkit.held, w.polkit.held + 1, w.polkit.n_held * sizeof(*w.polkit.held));
        finish(over, "NotFound");
        while (w.polkit.asked == BUS_ACCOUNT_HELD_MAX)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
        fake_polkit_answer(&w.polkit, false);
        for (size_t i = 0; i < BUS_ACCOUNT_HELD_MAX; i++)
                finish(waiting + i, "NotFound");
        finish(over + 1, "NotFound");
        end();
}

static void test_daemon_ends(void) {
        Waiting waiting;

        begin();
        start(&waiting, w.client, true);
        w.bus->world.bus = bus_free(w.bus->world.bus);
        while (w.polkit.cancelled == 0)
                CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
        w.authorizer = authorizer_polkit_free(w.authorizer);
        waiting_done(&waiting);
        CHECK_INT(w.bus->world.manager->acts, 0);
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
        RUN(test_returning, "C204: questions that were withdrawn count until polkit has answered");
        RUN(test_settled, "C202: and then what waits for them is asked about at once");
        RUN(test_timed_out, "C202 C204: and so do those whose time is over");
        RUN(test_all, "C204: of all accounts' together there are so many, and who has none is asked about");
        RUN(test_passed_on, "C204: a call that is answered unasked leaves its place to the next of its account");
        RUN(test_daemon_ends, "a question is withdrawn when errandd ends");
        return TEST_END();
}
