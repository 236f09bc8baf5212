/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/activation.h"
#include "errandd/paths.h"
#include "shared/bus-object.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define UNIT_PATH "/org/freedesktop/systemd1/unit/errandd_2eservice"
#define START_USEC (60 * USEC_PER_SEC) /* errandd probes its backend before it takes its name */
#define ANSWER_USEC (5 * USEC_PER_SEC)
#define LOOK_USEC (250 * USEC_PER_MSEC)
#define SAY_USEC (3 * USEC_PER_SEC)

typedef struct Activation {
        sd_bus *bus;
        MessageBusKind kind;
        usec_t began;
        bool answered, said, asked; /* asked: the service manager, for a start beside the bus's */
        unsigned down; /* looks, one after the other, that found the unit neither up nor on its way */
        char *problem;
} Activation;

static int on_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Activation *a = userdata;

        a->answered = true;
        if (e)
                a->problem = strdup(e->message ?: e->name);
        return 0;
}

static int get(sd_bus *bus, const char *interface, const char *property, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, SYSTEMD, UNIT_PATH, "org.freedesktop.DBus.Properties", "Get");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        if (r >= 0)
                r = sd_bus_message_append(m, "ss", interface, property);
        return r < 0 ? r : sd_bus_call(bus, m, ANSWER_USEC, NULL, ret);
}

static int get_text(sd_bus *bus, const char *interface, const char *property, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const char *s;
        int r;

        r = get(bus, interface, property, &m);
        if (r >= 0)
                r = sd_bus_message_read(m, "v", "s", &s);
        if (r < 0)
                return r;
        *ret = strdup(s);
        return *ret ? 0 : -ENOMEM;
}

/* 1: neither up nor on its way; 0: it may come yet, or nobody can say. */
static int look_whether_down(sd_bus *bus) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_free_ char *state = NULL;
        uint32_t job;

        if (get_text(bus, SYSTEMD ".Unit", "ActiveState", &state) < 0 || (!streq(state, "failed") && !streq(state, "inactive")) ||
            get(bus, SYSTEMD ".Unit", "Job", &m) < 0 || sd_bus_message_read(m, "v", "(uo)", &job, NULL) < 0)
                return 0;
        return job == 0;
}

/* Of the last start: whether it was over before this one was asked for. The bus takes a start that failed for one under way for another 25 seconds,
 * and asks the service manager for none meanwhile. After reset-failed the service manager knows of none, too. */
static bool is_old(const Activation *a, bool *ret_forgotten) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint64_t ended;

        if (get(a->bus, SYSTEMD ".Service", "ExecMainExitTimestampMonotonic", &m) < 0 || sd_bus_message_read(m, "v", "t", &ended) < 0)
                return false;
        *ret_forgotten = ended == 0;
        return ended < a->began;
}

/* What one's own service manager does, and the system's for root. */
static bool ask_for_start(const Activation *a) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(a->bus, &m, SYSTEMD, "/org/freedesktop/systemd1", SYSTEMD ".Manager", "StartUnit");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        if (r >= 0)
                r = sd_bus_message_append(m, "ss", "errandd.service", "replace");
        return r >= 0 && sd_bus_call(a->bus, m, ANSWER_USEC, NULL, NULL) >= 0;
}

/* errandd's own exit codes. */
static int why(const Activation *a, char **ret) {
        const char *file = a->kind == MESSAGE_BUS_SYSTEM ? PATHS_CONFIG_SYSTEM : PATHS_CONFIG_OWN_SHOWN;
        const char *systemctl = a->kind == MESSAGE_BUS_SYSTEM ? "systemctl" : "systemctl --user";
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_free_ char *result = NULL;
        bool forgotten = false, old = is_old(a, &forgotten);
        int32_t status = 0;
        int r;

        (void) get_text(a->bus, SYSTEMD ".Service", "Result", &result);
        if (get(a->bus, SYSTEMD ".Service", "ExecMainStatus", &m) < 0 || sd_bus_message_read(m, "v", "i", &status) < 0)
                status = 0;
        if (streq_ptr(result, "start-limit-hit"))
                r = asprintf(ret, "it failed too often in a row; once that is mended: %s reset-failed errandd", systemctl);
        else if (status == 2)
                r = asprintf(ret, "its configuration is refused\nerrand config check %s lists what is wrong with it", file);
        else if (status == 3)
                r = asprintf(ret, "a guarantee cannot be enforced on this host\nbailey doctor says what to do about it; "
                             "sandbox.requireFullEnforcement set to false in %s does without", file);
        else if (status == 4)
                r = asprintf(ret, "another errandd serves its state already");
        else if (streq_ptr(result, "success") && forgotten)
                return asprintf(ret, "the bus still waits for a start that failed, and asks for no other\nnothing was tried now; to start it: %s start errandd",
                                systemctl) < 0 ? -ENOMEM : 0;
        else
                r = asprintf(ret, "errandd.service failed (%s, exit code %d)", result ?: "for no reason that is known", status);
        if (r >= 0 && old && !forgotten) {
                _cleanup_free_ char *text = *ret;
                *ret = NULL;
                r = asprintf(ret, "%s\nthis is of its last start, and nothing was tried now; if that is mended: %s start errandd", text, systemctl);
        }
        return r < 0 ? -ENOMEM : 0;
}

static int tick(Activation *a) {
        bool forgotten = false;

        /* Not at the first look: the bus may be about to ask for it. */
        a->down = look_whether_down(a->bus) > 0 ? a->down + 1 : 0;
        if (a->down >= 3 && !a->asked && is_old(a, &forgotten)) {
                a->asked = true;
                if (ask_for_start(a)) {
                        a->down = 0;
                        return 0;
                }
        }
        if (a->down >= 3) {
                a->answered = true;
                return why(a, &a->problem);
        }
        if (!a->said && now_monotonic() - a->began >= SAY_USEC) {
                a->said = true;
                log_info("waiting for errandd, which is being started (%s status errandd)", a->kind == MESSAGE_BUS_SYSTEM ? "systemctl" : "systemctl --user");
        }
        return 0;
}

int activation_start(sd_bus *bus, MessageBusKind kind, char **ret_problem) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Activation a = {.bus = bus, .kind = kind, .began = now_monotonic()};
        usec_t looked = a.began;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, BUS_DRIVER, BUS_DRIVER_PATH, BUS_DRIVER, "StartServiceByName");
        if (r >= 0)
                r = sd_bus_message_append(m, "su", BUS_NAME, 0U);
        if (r >= 0)
                r = sd_bus_call_async(bus, &slot, m, on_answer, &a, START_USEC);
        while (r >= 0 && !a.answered) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, LOOK_USEC);
                if (r == -EINTR)
                        r = 0;
                if (r >= 0 && !a.answered && now_monotonic() - looked >= LOOK_USEC) {
                        looked = now_monotonic();
                        r = tick(&a);
                }
        }
        if (r < 0) {
                free(a.problem);
                return r;
        }
        if (!a.problem)
                return 0;
        *ret_problem = a.problem;
        return -EREMOTEIO;
}
