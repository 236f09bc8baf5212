/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-link.h"
#include "message-bus.h"
#include "test.h"

#define OBSERVER b->world.manager->observer
#define OBSERVED OBSERVER.userdata

static void check_subscribed(MessageBus *b, sd_bus *from) {
        Reply r = call(&b->world, from, BUS_ROOT, BUS_MANAGER_INTERFACE, "Subscribe", NULL);

        CHECK_FINE(r);
        reply_done(&r);
}

/* A subscriber that is stopped, a terminal with Ctrl-S say, and an agent that writes: what waits with the bus daemon counts against errandd, which all others
 * need to be heard. */
static void test_stopped(void) {
        static char text[16 * 1024];
        const Update piece = {.kind = UPDATE_MESSAGE, .n_fields = 1, .fields = {{.name = "text", .text = text}}};
        uint64_t queued;
        UpdateCount seen = {};
        TestAuthorizer authorizer = test_authorizer();
        sd_bus *client, *quiet;
        MessageBus *b;
        Session *a1;

        memset(text, 'x', sizeof(text) - 1);
        b = message_bus_new();
        a1 = fake_session(b->world.manager, "a1", message_bus_account());
        client = message_bus_begin(b, &authorizer.authorizer);
        quiet = message_bus_client(b, message_bus_stranger());
        check_subscribed(b, quiet);
        check_subscribed(b, client);
        CHECK(sd_bus_add_filter(client, NULL, count_updates, &seen) >= 0 && sd_bus_detach_event(client) >= 0);
        for (unsigned i = 0; i < 1024; i++) { /* twice what the bus daemon keeps of one sender */
                OBSERVER.session_update(a1, &piece, OBSERVED);
                if (i % 16 == 0)
                        message_bus_settle(b, b->service);
        }
        message_bus_settle(b, b->service);
        CHECK(sd_bus_get_n_queued_write(b->service, &queued) >= 0);
        CHECK_INT(queued, 0);
        CHECK(sd_bus_attach_event(client, b->world.event, 0) >= 0);
        for (BusLink *l = b->world.bus->links; l; l = l->next)
                while (l->unread.signals >= BUS_UNREAD_PING_BYTES) /* until it has answered, and is told again */
                        CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
        message_bus_settle(b, client);
        CHECK(seen.texts >= BUS_UNREAD_UPDATES_MAX / (sizeof(text) + 512) && seen.texts <= BUS_UNREAD_SIGNALS_MAX / sizeof(text));
        for (unsigned i = 0; i < 16; i++)
                OBSERVER.session_update(a1, &piece, OBSERVED);
        message_bus_settle(b, b->service);
        message_bus_settle(b, client);
        CHECK_INT(seen.texts + seen.missed, 1024 + 16);
        CHECK(seen.missed > 0 && !seen.unsubscribed);
        sd_bus_close_unref(quiet);
        message_bus_end(&b, &client);
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_WARNING);
        RUN(test_stopped, "C204: a subscriber that does not read keeps nobody else from being heard");
        return TEST_END();
}
