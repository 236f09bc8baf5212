/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "fake-polkit.h"

static int reply(sd_bus_message *m, bool yes, bool challenge) {
        return sd_bus_reply_method_return(m, "(bba{ss})", yes, challenge, 0);
}

static void note(FakePolkit *p, sd_bus_message *m) {
        const char *kind, *key, *value, *action, *cancellation;

        p->asked++;
        p->details[0] = 0;
        if (sd_bus_message_enter_container(m, 'r', "sa{sv}") < 0 || sd_bus_message_read(m, "sa{sv}", &kind, 1, &key, "s", &value) < 0 ||
            !streq(key, "name") || sd_bus_message_exit_container(m) < 0 || sd_bus_message_read(m, "s", &action) < 0)
                abort();
        (void) snprintf(p->kind, sizeof(p->kind), "%s", kind);
        (void) snprintf(p->name, sizeof(p->name), "%s", value);
        (void) snprintf(p->action, sizeof(p->action), "%s", action);
        if (sd_bus_message_enter_container(m, 'a', "{ss}") < 0)
                abort();
        while (sd_bus_message_read(m, "{ss}", &key, &value) > 0)
                (void) snprintf(p->details + strlen(p->details), sizeof(p->details) - strlen(p->details), "%s=%s;", key, value);
        if (sd_bus_message_exit_container(m) < 0 || sd_bus_message_read(m, "us", &p->flags, &cancellation) < 0)
                abort();
        (void) snprintf(p->cancellation, sizeof(p->cancellation), "%s", cancellation);
}

static int check(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        FakePolkit *p = userdata;

        note(p, m);
        switch (p->answer) {
        case POLKIT_HANG:
                if (p->n_held == ELEMENTSOF(p->held))
                        abort();
                p->held[p->n_held++] = sd_bus_message_ref(m);
                return 1;
        case POLKIT_ERROR:
                return sd_bus_reply_method_errorf(m, "org.freedesktop.PolicyKit1.Error.Failed", "it is broken");
        case POLKIT_NONSENSE:
                return sd_bus_reply_method_return(m, "b", 1);
        default:
                return reply(m, p->answer == POLKIT_YES, p->answer == POLKIT_CHALLENGE);
        }
}

static int cancel(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        FakePolkit *p = userdata;
        const char *id;

        if (sd_bus_message_read(m, "s", &id) < 0)
                abort();
        p->cancelled++;
        (void) snprintf(p->last_cancelled, sizeof(p->last_cancelled), "%s", id);
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", check, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("CancelCheckAuthorization", "s", "", cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

void fake_polkit_begin(FakePolkit *p, MessageBus *b) {
        *p = (FakePolkit){.bus = message_bus_service(b, "org.freedesktop.PolicyKit1")};
        if (sd_bus_add_object_vtable(p->bus, NULL, "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority", vtable, p) < 0)
                abort();
}

void fake_polkit_change(FakePolkit *p) {
        if (sd_bus_emit_signal(p->bus, "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority", "Changed", NULL) < 0)
                abort();
}

void fake_polkit_answer(FakePolkit *p, bool yes) {
        for (size_t i = 0; i < p->n_held; i++) {
                if (reply(p->held[i], yes, false) < 0)
                        abort();
                sd_bus_message_unref(p->held[i]);
        }
        p->n_held = 0;
}

void fake_polkit_end(FakePolkit *p) {
        for (size_t i = 0; i < p->n_held; i++)
                sd_bus_message_unref(p->held[i]);
        p->n_held = 0;
        (void) sd_bus_release_name(p->bus, "org.freedesktop.PolicyKit1");
        p->bus = sd_bus_flush_close_unref(p->bus);
}
