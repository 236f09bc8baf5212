/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "polkit-world.h"

static Session *add_session(PolkitWorld *w, const char *id, uid_t owner) {
        Session *s = fake_session(w->bus->world.manager, id, owner);
        const char *problem;
        const Grant *g;
        GrantClock now;

        if (grant_clock_now(&now) < 0 || grant_list_add(&s->grants, "one.example.com", "always", 0, &now, &g, &problem) < 0)
                abort();
        fake_receipt(w->bus->world.manager, id);
        return s;
}

void polkit_world_begin(PolkitWorld *w, char *const *operators) {
        *w = (PolkitWorld){.bus = message_bus_new()};
        fake_polkit_begin(&w->polkit, w->bus);
        if (authorizer_polkit_new(w->bus->service, operators, &w->authorizer) < 0)
                abort();
        w->foresee = w->authorizer->foresee;
        w->authorizer->foresee = NULL;
        w->a1 = add_session(w, "a1", message_bus_account());
        w->b2 = add_session(w, "b2", POLKIT_WORLD_STRANGER);
        w->bus->world.manager->project = "theirs";
        w->bus->world.manager->project_owner = POLKIT_WORLD_STRANGER;
        w->client = message_bus_begin(w->bus, w->authorizer);
}

void polkit_world_end(PolkitWorld *w) {
        sd_bus_close_unref(w->client);
        w->bus->world.bus = bus_free(w->bus->world.bus);
        authorizer_polkit_free(w->authorizer);
        if (w->polkit.bus)
                fake_polkit_end(&w->polkit);
        message_bus_free(w->bus);
        *w = (PolkitWorld){};
}
