/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The starter of units, against a service manager that does as it is told, over a real dbus-daemon. */

#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/units.h"
#include "message-bus.h"
#include "test.h"

typedef enum Manner {
        MANNER_DONE,        /* the job ends well */
        MANNER_FIRST,       /* JobRemoved before the method's answer, which no systemd does */
        MANNER_RESULT,      /* it ends with `result` */
        MANNER_ERROR,       /* the call is refused with `error` */
        MANNER_HOLD,        /* nothing yet */
        MANNER_TAKEN,       /* the job is under way */
} Manner;

typedef struct Asked {
        char member[16], name[64], mode[16];
} Asked;

static MessageBus *b;
static sd_bus *manager;
static Units *units;
static Manner manner;
static const char *result, *failure;
static Asked asked[16];
static unsigned n_asked, job;
static sd_bus_message *held;

typedef struct Told {
        unsigned times;
        char *problem;
} Told;

static void on_done(const char *problem, void *userdata) {
        Told *t = userdata;

        t->times++;
        free(t->problem);
        t->problem = problem ? strdup(problem) : NULL;
}

static void remove_job(unsigned number, const char *unit, const char *how) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/org/freedesktop/systemd1/job/%u", number);
        CHECK(sd_bus_emit_signal(manager, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "JobRemoved", "uoss", number, path, unit, how) >= 0);
}

static int answer(sd_bus_message *m, unsigned number) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/org/freedesktop/systemd1/job/%u", number);
        return sd_bus_reply_method_return(m, "o", path);
}

static int on_call(sd_bus_message *m, _unused_ void *userdata, sd_bus_error *error) {
        const char *name, *mode;
        unsigned number = ++job;
        int r;

        CHECK(sd_bus_message_read(m, "ss", &name, &mode) >= 0);
        Asked *a = &asked[n_asked++];
        (void) snprintf(a->member, sizeof(a->member), "%s", sd_bus_message_get_member(m));
        (void) snprintf(a->name, sizeof(a->name), "%s", name);
        (void) snprintf(a->mode, sizeof(a->mode), "%s", mode);
        switch (manner) {
        case MANNER_ERROR:
                return sd_bus_error_set(error, failure, "the words of systemd");
        case MANNER_HOLD:
                held = sd_bus_message_ref(m);
                return 1;
        case MANNER_FIRST:
                remove_job(number + 100, "other.service", "failed");
                break;
        case MANNER_DONE:
        case MANNER_RESULT:
        case MANNER_TAKEN:
                break;
        }
        r = answer(m, number);
        if (manner == MANNER_TAKEN)
                return r;
        remove_job(number, name, manner == MANNER_RESULT ? result : "done");
        return r;
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("StartUnit", "ss", "o", on_call, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", on_call, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
        SD_BUS_VTABLE_END,
};

static void begin(Manner m) {
        b = message_bus_new();
        manager = message_bus_service(b, "org.freedesktop.systemd1");
        CHECK(sd_bus_add_object_vtable(manager, NULL, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", vtable, NULL) >= 0);
        CHECK(units_new(b->service, b->world.event, &units) >= 0);
        manner = m;
        n_asked = job = 0;
}

static void end(void) {
        units = units_free(units);
        manager = sd_bus_flush_close_unref(manager);
        b = message_bus_free(b);
}

static void await(Told *t) {
        while (t->times == 0)
                CHECK(sd_event_run(b->world.event, 20 * USEC_PER_SEC) > 0);
}

static void told_done(Told *t) {
        t->problem = mfree(t->problem);
        t->times = 0;
}

static void test_start_and_stop(void) {
        Told t = {};

        begin(MANNER_DONE);
        CHECK_INT(units_start(units, "errand-broker@s1.socket", on_done, &t, NULL), 0);
        CHECK_INT(t.times, 0); /* from the event loop only */
        await(&t);
        CHECK(!t.problem);
        told_done(&t);
        CHECK_INT(units_stop(units, "errand-broker@s1.service", on_done, &t, NULL), 0);
        await(&t);
        CHECK(!t.problem);
        CHECK_INT(n_asked, 2);
        CHECK_STR(asked[0].member, "StartUnit");
        CHECK_STR(asked[0].name, "errand-broker@s1.socket");
        CHECK_STR(asked[0].mode, "replace");
        CHECK_STR(asked[1].member, "StopUnit");
        message_bus_settle(b, b->service);
        CHECK_INT(t.times, 1);
        end();
}

static void test_other_jobs(void) {
        Told t = {};

        begin(MANNER_FIRST);
        CHECK_INT(units_start(units, "errand-broker@s1.socket", on_done, &t, NULL), 0);
        await(&t);
        CHECK(!t.problem);
        end();
}

/* To that connection alone: no rule keeps it away. */
static void test_forged(void) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const char *name = NULL;
        Told t = {};

        begin(MANNER_TAKEN);
        sd_bus *stranger = message_bus_client(b, message_bus_stranger());
        CHECK_INT(units_start(units, "x.service", on_done, &t, NULL), 0);
        while (job == 0)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        message_bus_settle(b, b->service); /* it knows the job's number */
        CHECK(sd_bus_get_unique_name(b->service, &name) >= 0);
        CHECK(sd_bus_message_new_signal(stranger, &m, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "JobRemoved") >= 0);
        CHECK(sd_bus_message_append(m, "uoss", 1U, "/org/freedesktop/systemd1/job/1", "x.service", "failed") >= 0);
        CHECK(sd_bus_send_to(stranger, m, name, NULL) >= 0);
        message_bus_settle(b, stranger);
        message_bus_settle(b, b->service);
        CHECK_INT(t.times, 0);
        remove_job(1, "x.service", "done");
        await(&t);
        CHECK(!t.problem);
        sd_bus_flush_close_unref(stranger);
        end();
}

static void result_is(const char *how, bool stop, const char *words) {
        Told t = {};

        result = how;
        CHECK_INT(stop ? units_stop(units, "x.service", on_done, &t, NULL) : units_start(units, "x.service", on_done, &t, NULL), 0);
        await(&t);
        if (!words)
                CHECK(!t.problem);
        else if (!t.problem || !strstr(t.problem, words) || !strstr(t.problem, "x.service"))
                test_fail(__FILE__, __LINE__, "%s: %s", how, t.problem ?: "no problem");
        told_done(&t);
}

static void test_results(void) {
        begin(MANNER_RESULT);
        result_is("failed", false, "cannot be started: it failed");
        result_is("timeout", false, "it took too long");
        result_is("dependency", false, "a unit that it needs failed");
        result_is("canceled", true, "cannot be stopped: another job");
        result_is("skipped", true, NULL);
        result_is("skipped", false, "does not apply now");
        result_is("a word of the future", false, "no reason that is known here");
        end();
}

static void refused(const char *name, bool stop, const char *words) {
        Told t = {};

        failure = name;
        CHECK_INT(stop ? units_stop(units, "x.service", on_done, &t, NULL) : units_start(units, "x.service", on_done, &t, NULL), 0);
        await(&t);
        if (!words)
                CHECK(!t.problem);
        else if (!t.problem || !strstr(t.problem, words))
                test_fail(__FILE__, __LINE__, "%s: %s", name, t.problem ?: "no problem");
        told_done(&t);
}

static void test_refusals(void) {
        begin(MANNER_ERROR);
        refused("org.freedesktop.systemd1.NoSuchUnit", false, "the words of systemd");
        refused("org.freedesktop.systemd1.NoSuchUnit", true, NULL);
        refused(SD_BUS_ERROR_ACCESS_DENIED, false, "errand.rules");
        refused(SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, true, "errand.rules");
        refused("org.freedesktop.systemd1.UnitMasked", false, "the words of systemd");
        end();
}

static void test_absent(void) {
        Told t = {};

        begin(MANNER_DONE);
        manager = sd_bus_flush_close_unref(manager);
        CHECK_INT(units_start(units, "x.service", on_done, &t, NULL), 0);
        await(&t);
        CHECK(t.problem && strstr(t.problem, "x.service cannot be started"));
        told_done(&t);
        end();
}

static void test_forget(void) {
        Told t = {}, other = {};
        UnitJob *j = NULL;

        begin(MANNER_HOLD);
        CHECK_INT(units_start(units, "x.service", on_done, &t, &j), 0);
        while (!held)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        j = unit_job_forget(j);
        CHECK(answer(held, 1) >= 0);
        held = sd_bus_message_unref(held);
        remove_job(1, "x.service", "done");
        manner = MANNER_DONE;
        CHECK_INT(units_start(units, "y.service", on_done, &other, NULL), 0);
        await(&other);
        CHECK_INT(t.times, 0);
        /* And one that is under way when everything ends. */
        manner = MANNER_HOLD;
        CHECK_INT(units_start(units, "z.service", on_done, &t, NULL), 0);
        while (!held)
                CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        units = units_free(units);
        held = sd_bus_message_unref(held);
        CHECK_INT(t.times, 0);
        told_done(&other);
        end();
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_ERROR);
        RUN(test_start_and_stop, "a unit is started and stopped, and the end of its job is waited for");
        RUN(test_other_jobs, "the end of another job is not taken for one's own");
        RUN(test_forged, "C194: who says how a job ended and has not taken it on is not believed");
        RUN(test_results, "how a job ended is said in words");
        RUN(test_refusals, "what systemd or polkit refuses is said, and what is not there is stopped");
        RUN(test_absent, "without a service manager it is said that there is none");
        RUN(test_forget, "a job that was forgotten is not told");
        return TEST_END();
}
