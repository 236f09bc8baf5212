/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"
#include "conversation.h"
#include "errandd/authorizer-polkit.h"
#include "world.h"

/* The bus's face with a stand-in behind it, as a program: test-errandd [deny|polkit] [ADDRESS], else on the bus of $DBUS_STARTER_ADDRESS, as what a bus
 * daemon starts. Prints "ready" when it has the name, and what a session is made with. The owner of the session a1
 * is $OWNER, else its own account; with $ENDED it has ended with that exit code; with $CONVERSATION sessions have
 * one, which stands as that says. */

static bool deny;
static Manager *manager;

static int check(_unused_ Authorizer *a, const AuthorizeRequest *q, _unused_ AuthorizeDone done, _unused_ void *userdata,
                 _unused_ void **ret_ticket) {
        return !deny && q->own;
}

static int say(_unused_ sd_event_source *source, _unused_ void *userdata) {
        static unsigned acts;

        if (manager->acts != acts) {
                acts = manager->acts;
                printf("project %s fd %s command %s\n", manager->seen_project ?: "-", manager->seen.project_fd >= 0 ? "yes" : "no",
                       manager->seen_command ?: "-");
                fflush(stdout);
        }
        return 0;
}

static void end(Session *s, const char *code) {
        s->state = SESSION_STOPPED;
        s->record->exit_reason = strdup("exited");
        s->record->exit_status = (uint64_t) atoi(code);
}

/* Whom a bus started, nobody else ends. */
static void leave(void *userdata) {
        (void) sd_event_exit(userdata, EXIT_SUCCESS);
}

int main(int argc, char **argv) {
        Authorizer authorizer = {.check = check, .operator = test_no_operator};
        const char *word = argc > 1 ? argv[1] : "", *owner = getenv("OWNER"), *conversation = getenv("CONVERSATION");
        const char *address = argc > 1 && strchr(argv[argc - 1], ':') ? argv[argc - 1] : getenv("DBUS_STARTER_ADDRESS");
        Authorizer *asked = &authorizer;
        sd_event_source *source = NULL;
        sd_event *event = NULL;
        sd_bus *bus = NULL;
        Bus *face = NULL;
        Fault f = {};

        log_setup("test-errandd", LOG_LEVEL_INFO);
        deny = streq(word, "deny");
        if (sd_event_new(&event) < 0 || sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address) < 0 || sd_bus_set_bus_client(bus, true) < 0 ||
            sd_bus_negotiate_fds(bus, true) < 0 || sd_bus_start(bus) < 0)
                return EXIT_FAILURE;
        manager = fake_manager(event);
        fake_session(manager, "a1", owner ? (uid_t) atoi(owner) : geteuid());
        if (getenv("ENDED"))
                end(manager_find(manager, "a1"), getenv("ENDED"));
        fake_session(manager, "b2", 4242);
        if (streq(word, "polkit") && authorizer_polkit_new(bus, NULL, &asked) < 0)
                return EXIT_FAILURE;
        if (bus_new_on_bus(manager, bus, &(BusOptions){.authorizer = asked, .lost = leave, .userdata = event}, &face) < 0 ||
            sd_event_add_post(event, &source, say, NULL) < 0 || (conversation && conversation_begin(bus, event, conversation) < 0))
                return EXIT_FAILURE;
        if (bus_request_name(bus, &f) < 0) {
                log_error("%s", f.text);
                return EXIT_FAILURE;
        }
        puts("ready");
        fflush(stdout);
        return sd_event_loop(event) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
