/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/log.h"
#include "errand/connect.h"
#include "errand/json-output.h"
#include "errand/output.h"
#include "errand/verbs.h"
#include "shared/bus-object.h"

static const char *const mode_words[] = {[CONNECT_SYSTEM] = "system", [CONNECT_USER] = "user", [CONNECT_EMBEDDED] = "embedded"};

static int print_lines(const Request *q, Connection *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const char *line;
        int r;

        r = bus_call(c, BUS_ROOT, "org.freedesktop.DBus.Properties", "Get", "Failed to get the report", &m, "ss", BUS_MANAGER_INTERFACE, "Report");
        if (r != EXIT_OK)
                return r;
        r = sd_bus_message_enter_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        if (r >= 0) {
                bool person = isatty(STDOUT_FILENO); /* a program has --json */
                output_begin(q);
                if (person)
                        printf("errandd on %s\n", c->place);
        }
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &line)) > 0) {
                _cleanup_free_ char *text = text_for_terminal(line);
                puts(text ?: "");
        }
        output_end();
        if (r < 0) {
                log_error_errno(r, "errandd's report cannot be read: %m");
                return EXIT_FAILED;
        }
        return EXIT_OK;
}

int verb_report(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(json_writer_done) JsonWriter w = {};
        int r;

        r = connection_open(q, CONNECT_START_STATE, &c);
        if (r != EXIT_OK || !q->json)
                return r == EXIT_OK ? print_lines(q, c) : r;
        r = bus_call(c, BUS_ROOT, "org.freedesktop.DBus.Properties", "GetAll", "Failed to get the report", &m, "s", BUS_MANAGER_INTERFACE);
        if (r != EXIT_OK)
                return r;
        json_open_object(&w, NULL);
        json_add_string(&w, "place", c->place);
        json_add_string(&w, "mode", mode_words[c->mode]);
        r = json_add_members(&w, m);
        json_close_object(&w);
        if (r < 0) {
                log_error_errno(r, "errandd's report cannot be read: %m");
                return EXIT_FAILED;
        }
        return json_print(&w);
}

int verb_reload(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        int r = connection_open(q, CONNECT_ASKS, &c);

        return r == EXIT_OK ? manager_call(c, "Reload", "Failed to reload the configuration", NULL, NULL) : r;
}
