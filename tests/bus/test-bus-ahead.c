/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "polkit-world.h"
#include "test.h"

/* What polkit is asked when a session was made, before its client starts it. */

#define ID "fresh"
#define FRESH BUS_SESSION_ROOT "/" ID

static PolkitWorld w;

static void turn(void) {
        CHECK(sd_event_run(w.bus->world.event, UINT64_MAX) >= 0);
}

static void wait_asked(unsigned n) {
        while (w.polkit.asked < n)
                turn();
}

/* Whatever was sent before, by whom ever, has been taken. */
static void settle(void) {
        message_bus_settle(w.bus, w.polkit.bus);
        message_bus_settle(w.bus, w.bus->service);
        message_bus_settle(w.bus, w.client);
}

static void begin(void) {
        polkit_world_begin(&w, NULL);
        w.authorizer->foresee = w.foresee;
        settle();
}

static void end(void) {
        polkit_world_end(&w);
}

/* The session, with the question ahead answered like that, or out: POLKIT_HANG. */
static void make(FakeAnswer ahead) {
        sd_bus_message *m = call_new(w.client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
        Waiting waiting;

        CHECK(sd_bus_message_append(m, "a{sv}", 2, "id", "s", ID, "project", "s", "shop") >= 0);
        w.polkit.answer = POLKIT_HANG;
        call_start(w.client, m, &waiting);
        wait_asked(1);
        w.polkit.answer = ahead;
        fake_polkit_answer(&w.polkit, true);
        while (!waiting.answered)
                turn();
        CHECK_FINE(waiting.reply);
        waiting_done(&waiting);
        settle();
        w.bus->world.manager->acts = 0;
        CHECK_INT(w.polkit.asked, 2);
}

static void begin_start(sd_bus *from, bool interactive, Waiting *waiting) {
        sd_bus_message *m = call_new(from, FRESH, BUS_SESSION_INTERFACE, "Start");

        CHECK(sd_bus_message_set_allow_interactive_authorization(m, interactive) >= 0);
        call_start(from, m, waiting);
}

static void finish(Waiting *waiting, const char *error) {
        while (!waiting->answered)
                turn();
        CHECK_ERROR(waiting->reply, error);
        waiting_done(waiting);
}

static void start(sd_bus *from, const char *error) {
        Waiting waiting;

        begin_start(from, false, &waiting);
        finish(&waiting, error);
}

/* Start asks as if nothing had been asked ahead, and polkit has the word. */
static void check_asks_anew(void) {
        unsigned asked = w.polkit.asked;

        w.polkit.answer = POLKIT_NO;
        start(w.client, "NotPermitted");
        CHECK_INT(w.polkit.asked, asked + 1);
        CHECK_INT(w.bus->world.manager->acts, 0);
        w.polkit.answer = POLKIT_YES;
        start(w.client, "no error");
        CHECK_INT(w.polkit.asked, asked + 2);
        CHECK_INT(w.bus->world.manager->acts, 1);
}

static void test_used(void) {
        const char *name;
        char details[512];

        begin();
        make(POLKIT_YES);
        CHECK(sd_bus_get_unique_name(w.client, &name) >= 0);
        CHECK_STR(w.polkit.kind, "system-bus-name");
        CHECK_STR(w.polkit.name, name);
        CHECK_STR(w.polkit.action, "org.errand1.control-own");
        CHECK_INT(w.polkit.flags, 0);
        (void) snprintf(details, sizeof(details), "%s", w.polkit.details);
        w.polkit.answer = POLKIT_NO;
        start(w.client, "no error");
        CHECK_INT(w.polkit.asked, 2);
        CHECK_INT(w.bus->world.manager->acts, 1);
        start(w.client, "NotPermitted"); /* once */
        CHECK_INT(w.polkit.asked, 3);
        CHECK_INT(w.bus->world.manager->acts, 1);
        CHECK_STR(w.polkit.details, details); /* the same question */
        CHECK_STR(w.polkit.action, "org.errand1.control-own");
        end();
}

static void test_interactive(void) {
        Waiting waiting;

        begin();
        make(POLKIT_YES);
        begin_start(w.client, true, &waiting);
        finish(&waiting, "no error");
        CHECK_INT(w.polkit.asked, 2);
        end();

        begin();
        make(POLKIT_CHALLENGE);
        w.polkit.answer = POLKIT_YES;
        begin_start(w.client, true, &waiting);
        finish(&waiting, "no error");
        CHECK_INT(w.polkit.asked, 3);
        CHECK_INT(w.polkit.flags, 1); /* only now somebody may be asked */
        end();
}

static void test_waited_for(void) {
        Waiting waiting;

        begin();
        make(POLKIT_HANG);
        begin_start(w.client, false, &waiting);
        settle();
        CHECK(!waiting.answered);
        CHECK_INT(w.polkit.asked, 2);
        fake_polkit_answer(&w.polkit, true);
        finish(&waiting, "no error");
        CHECK_INT(w.polkit.asked, 2);
        CHECK_INT(w.bus->world.manager->acts, 1);
        end();
}

static void test_waited_for_in_vain(void) {
        char cancellation[64];
        Waiting waiting;

        begin();
        make(POLKIT_HANG);
        (void) snprintf(cancellation, sizeof(cancellation), "%s", w.polkit.cancellation);
        begin_start(w.client, true, &waiting);
        settle();
        fake_polkit_answer(&w.polkit, false);
        wait_asked(3);
        CHECK_INT(w.polkit.flags, 1);
        CHECK(!streq(w.polkit.cancellation, cancellation));
        CHECK_INT(w.bus->world.manager->acts, 0);
        fake_polkit_answer(&w.polkit, true);
        finish(&waiting, "no error");
        CHECK_INT(w.bus->world.manager->acts, 1);
        end();
}

static void test_no_plain_yes(void) {
        static const FakeAnswer answers[] = {POLKIT_NO, POLKIT_CHALLENGE, POLKIT_ERROR, POLKIT_NONSENSE};

        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                begin();
                make(answers[i]);
                check_asks_anew();
                end();
        }
}

static void test_changed(void) {
        begin();
        make(POLKIT_YES);
        fake_polkit_change(&w.polkit);
        settle();
        check_asks_anew();
        end();
}

static void test_changed_while_out(void) {
        Waiting waiting;

        begin();
        make(POLKIT_HANG);
        fake_polkit_change(&w.polkit);
        while (w.polkit.cancelled == 0)
                turn();
        fake_polkit_answer(&w.polkit, true); /* by what counted before */
        settle();
        check_asks_anew();
        end();

        begin();
        make(POLKIT_HANG);
        begin_start(w.client, false, &waiting);
        settle();
        w.polkit.answer = POLKIT_NO;
        fake_polkit_change(&w.polkit);
        finish(&waiting, "NotPermitted");
        CHECK_INT(w.polkit.asked, 3);
        CHECK_INT(w.polkit.cancelled, 1);
        fake_polkit_answer(&w.polkit, true);
        settle();
        CHECK_INT(w.bus->world.manager->acts, 0);
        end();
}

static void test_another_polkit(void) {
        begin();
        make(POLKIT_YES);
        fake_polkit_end(&w.polkit);
        start(w.client, "NotPermitted");
        end();

        begin();
        make(POLKIT_YES);
        fake_polkit_end(&w.polkit);
        fake_polkit_begin(&w.polkit, w.bus);
        settle();
        check_asks_anew();
        end();
}

static void test_another_client(void) {
        sd_bus *other;

        begin();
        other = message_bus_client(w.bus, message_bus_account());
        make(POLKIT_YES);
        w.polkit.answer = POLKIT_NO;
        start(other, "NotPermitted");
        CHECK_INT(w.polkit.asked, 3);
        CHECK_INT(w.bus->world.manager->acts, 0);
        sd_bus_close_unref(other);
        end();
}

static void check_refused(const char *path, const char *member) {
        unsigned asked = w.polkit.asked;
        Reply r = call(&w.bus->world, w.client, path, BUS_SESSION_INTERFACE, member, NULL);

        CHECK_ERROR(r, "NotPermitted");
        reply_done(&r);
        CHECK_INT(w.polkit.asked, asked + 1);
        CHECK_INT(w.bus->world.manager->acts, 0);
}

static void test_something_else(void) {
        begin();
        make(POLKIT_YES);
        w.polkit.answer = POLKIT_NO;
        check_refused(BUS_SESSION_ROOT "/a1", "Start");
        check_refused(FRESH, "Stop");
        check_refused(FRESH, "Describe");
        check_refused(FRESH, "Attach");
        end();
}

/* A rule may go by any of what it is told. */
static void test_other_details(void) {
        Session *s;

        begin();
        make(POLKIT_YES);
        s = manager_find(w.bus->world.manager, ID);
        s->record->project = (free(s->record->project), strdup("elsewhere"));
        check_asks_anew();
        end();
}

static void test_expired(void) {
        usec_t over;

        begin();
        authorizer_polkit_set_ahead(w.authorizer, 20 * USEC_PER_MSEC);
        make(POLKIT_YES);
        for (over = now_monotonic() + 20 * USEC_PER_MSEC; now_monotonic() <= over;)
                CHECK(sd_event_run(w.bus->world.event, USEC_PER_MSEC) >= 0);
        check_asks_anew();
        end();
}

static void test_silent(void) {
        Waiting waiting;

        begin();
        authorizer_polkit_set_ahead(w.authorizer, USEC_PER_MSEC);
        make(POLKIT_HANG);
        authorizer_polkit_set_timeouts(w.authorizer, 20 * USEC_PER_MSEC, USEC_INFINITY); /* of Start, not of what came before */
        begin_start(w.client, false, &waiting);
        finish(&waiting, "NotPermitted"); /* when Start's own question is over, too */
        CHECK_INT(w.polkit.asked, 3);
        while (w.polkit.cancelled < 2)
                turn();
        end();
}

static void test_client_gone(void) {
        Waiting waiting;

        for (int waits = 0; waits < 2; waits++) {
                begin();
                make(POLKIT_HANG);
                if (waits) {
                        begin_start(w.client, false, &waiting);
                        settle();
                        waiting_done(&waiting);
                }
                w.client = sd_bus_close_unref(w.client);
                while (w.polkit.cancelled == 0)
                        turn();
                CHECK_STR(w.polkit.last_cancelled, w.polkit.cancellation);
                fake_polkit_answer(&w.polkit, true);
                message_bus_settle(w.bus, w.bus->service);
                CHECK_INT(w.polkit.asked, 2);
                CHECK_INT(w.bus->world.manager->acts, 0);
                end();
        }
}

static void test_session_gone(void) {
        SessionRecord *record;

        begin();
        make(POLKIT_YES);
        fake_forget(manager_find(w.bus->world.manager, ID));
        record = fake_session(w.bus->world.manager, ID, message_bus_account())->record;
        free(record->project);
        record->project = strdup("shop");
        check_asks_anew();
        end();
}

static void test_operators(void) {
        begin();
        make(POLKIT_YES);
        CHECK_INT(w.authorizer->set_operators(w.authorizer, NULL), 0);
        check_asks_anew();
        end();
}

static AuthorizeRequest request_of(uid_t uid) {
        return (AuthorizeRequest){.uid = uid, .sender = ":1.0", .permission = PERMISSION_CONTROL, .own = true, .member = "Start", .session = ID};
}

static void foresee(uid_t uid) {
        AuthorizeRequest q = request_of(uid);

        w.foresee(w.authorizer, &q);
}

static void test_bounded(void) {
        AuthorizeRequest other = request_of(message_bus_account());

        begin();
        make(POLKIT_HANG);
        w.foresee(w.authorizer, &other);
        settle();
        CHECK_INT(w.polkit.asked, 2);
        w.polkit.answer = POLKIT_YES;
        fake_polkit_answer(&w.polkit, true);
        settle();
        w.foresee(w.authorizer, &other); /* takes the place of the one that was not used */
        settle();
        CHECK_INT(w.polkit.asked, 3);
        check_asks_anew();
        end();

        begin();
        w.polkit.answer = POLKIT_HANG;
        for (uid_t uid = 1; uid < 100; uid++)
                foresee(uid);
        settle();
        CHECK_INT(w.polkit.asked, AUTHORIZE_AHEAD_MAX);
        end();
}

static void test_nobody_to_ask(void) {
        char *const operators[] = {(char *) "77", NULL};
        AuthorizeRequest q = request_of(78);

        begin();
        CHECK_INT(w.authorizer->set_operators(w.authorizer, operators), 0);
        foresee(0);
        foresee((uid_t) -1);
        foresee(77);
        q.sender = NULL;
        w.foresee(w.authorizer, &q);
        settle();
        CHECK_INT(w.polkit.asked, 0);
        end();
}

/* Until the bus has agreed to tell what changes. */
static void test_unwatched(void) {
        AuthorizeRequest q = request_of(78);
        Authorizer *a;

        begin();
        CHECK(authorizer_polkit_new(w.bus->service, NULL, &a) >= 0);
        a->foresee(a, &q);
        settle();
        CHECK_INT(w.polkit.asked, 0);
        a->foresee(a, &q);
        settle();
        CHECK_INT(w.polkit.asked, 1);
        authorizer_polkit_free(a);
        end();
}

static void test_daemon_ends(void) {
        begin();
        make(POLKIT_HANG);
        w.bus->world.bus = bus_free(w.bus->world.bus);
        w.authorizer = authorizer_polkit_free(w.authorizer);
        while (w.polkit.cancelled == 0)
                turn();
        end();
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_ERROR); /* every no of a broken polkit is a warning */
        message_bus_keep_daemon();
        RUN(test_used, "C193: a yes to what was asked ahead counts once, and it is Start's own question");
        RUN(test_interactive, "C203: nobody is asked for a password ahead");
        RUN(test_waited_for, "Start waits for the question that is out");
        RUN(test_waited_for_in_vain, "Start asks anew when that has another answer");
        RUN(test_no_plain_yes, "C194: no, a challenge, an error, nonsense: Start asks anew");
        RUN(test_changed, "C194: a yes from before polkit changed is not used");
        RUN(test_changed_while_out, "C194: nor one that comes after it");
        RUN(test_another_polkit, "C194: nor one of a polkit that has ended");
        RUN(test_another_client, "C193: nor for another client of the account");
        RUN(test_something_else, "D001: nor for another session or another member");
        RUN(test_other_details, "D001: nor where a rule would be told something else");
        RUN(test_expired, "C194: nor after its time");
        RUN(test_silent, "C202: a polkit that says nothing is a no for Start, too");
        RUN(test_client_gone, "C194 C202: nothing is left of a client that has gone, and its question is withdrawn");
        RUN(test_session_gone, "D001: nor for another session of the same name");
        RUN(test_operators, "a yes is not used after the operators were set anew");
        RUN(test_bounded, "one question of an account is out at a time, and few in all");
        RUN(test_nobody_to_ask, "C195: who passes unasked, or never, is not asked about ahead");
        RUN(test_unwatched, "C194: nothing is asked ahead while it is not told when polkit changes");
        RUN(test_daemon_ends, "a question is withdrawn when errandd ends");
        message_bus_end_daemon();
        return TEST_END();
}
