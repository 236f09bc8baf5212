/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"
#include "world.h"

/* The bus's face with a stand-in behind it, as a program: test-errandd [deny] on the bus of $DBUS_STARTER_ADDRESS, as what a bus daemon starts, or of the
 * last argument. Prints "ready" when it has the name, and what a session is made with. */

static bool deny;
static Manager *manager;

static int check(_unused_ Authorizer *a, const AuthorizeRequest *q, _unused_ AuthorizeDone done, _unused_ void *userdata,
                 _unused_ void **ret_ticket) {
        return !deny && q->own;
}

static bool no_operator(_unused_ Authorizer *a, _unused_ uid_t uid) {
        return false;
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

int main(int argc, char **argv) {
        Authorizer authorizer = {.check = check, .operator = no_operator};
        const char *address = argc > 1 && !streq(argv[argc - 1], "deny") ? argv[argc - 1] : getenv("DBUS_STARTER_ADDRESS");
        sd_event_source *source = NULL;
        sd_event *event = NULL;
        sd_bus *bus = NULL;
        Bus *face = NULL;
        Fault f = {};

        log_setup("test-errandd", LOG_LEVEL_INFO);
        deny = argc > 1 && streq(argv[1], "deny");
        if (sd_event_new(&event) < 0 || sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address) < 0 || sd_bus_set_bus_client(bus, true) < 0 ||
            sd_bus_negotiate_fds(bus, true) < 0 || sd_bus_start(bus) < 0)
                return EXIT_FAILURE;
        manager = fake_manager(event);
        fake_session(manager, "a1", geteuid());
        fake_session(manager, "b2", geteuid() + 1);
        if (bus_new_on_bus(manager, bus, &(BusOptions){.authorizer = &authorizer, .mode = CONFIG_SYSTEM}, &face) < 0 ||
            sd_event_add_post(event, &source, say, NULL) < 0)
                return EXIT_FAILURE;
        if (bus_request_name(bus, &f) < 0) {
                log_error("%s", f.text);
                return EXIT_FAILURE;
        }
        puts("ready");
        fflush(stdout);
        return sd_event_loop(event) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
