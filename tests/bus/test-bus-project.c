/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "message-bus.h"
#include "test.h"

static MessageBus *b;
static TestAuthorizer authorizer;
static sd_bus *client;

static int allow(_unused_ Authorizer *a, _unused_ const AuthorizeRequest *q, _unused_ AuthorizeDone done, _unused_ void *userdata, _unused_ void **ret_ticket) {
        return 1;
}

static void begin(void) {
        authorizer = test_authorizer();
        authorizer.authorizer.check = allow;
        authorizer.authorizer.operator = test_no_operator;
        b = message_bus_new();
        client = message_bus_begin(b, &authorizer.authorizer);
}

static void end(void) {
        message_bus_end(&b, &client);
}

/* What a caller was let into is whose project it was then: it may have become another's when it was waited for. */
static void test_project(void) {
        static const struct {
                const char *owned;
                uid_t owner;
                bool others;
        } rows[] = {{NULL, 0, false}, {"place", 2, true}, {"place", UID_NONE, true}};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                begin();
                Manager *m = b->world.manager;
                Waiting waiting = {};
                m->projects_wait = true;
                m->project = rows[i].owned;
                m->project_owner = rows[i].owner;
                sd_bus_message *create = call_new(client, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession");
                CHECK(sd_bus_message_append(create, "a{sv}", 1, "project", "s", "place") >= 0);
                call_start(client, create, &waiting);
                while (!m->project_made)
                        CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
                m->project = "place";
                m->project_owner = 2;
                (void) m->project_made(NULL, false, m->project_userdata);
                while (!waiting.answered)
                        CHECK(sd_event_run(b->world.event, UINT64_MAX) >= 0);
                CHECK_FINE(waiting.reply);
                CHECK_INT(m->seen.others, rows[i].others);
                waiting_done(&waiting);
                end();
        }
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_WARNING);
        RUN(test_project, "who waits for a project comes into nobody's that it was not let into");
        return TEST_END();
}
