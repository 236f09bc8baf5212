/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/connect.h"
#include "errand/json-output.h"
#include "errand/prompt.h"
#include "errand/table.h"
#include "errand/verbs.h"

static void print_lines(const char *text) {
        while (*text) {
                size_t n = strcspn(text, "\n");
                _cleanup_free_ char *line = strndup(text, n), *shown = line ? text_for_terminal(line) : NULL;

                printf("%s\n", shown ?: "out of memory");
                text += n + (text[n] == '\n');
        }
}

int verb_say(const Request *q) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        const char *reply;
        int r;

        if (prompt_text(q, &text) < 0)
                return EXIT_FAILED;
        r = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (r == EXIT_OK)
                r = session_call(c, q->operands[0], "Say", "Failed to say it", &m, "s", text);
        if (r != EXIT_OK)
                return r;
        if (sd_bus_message_read_basic(m, 's', &reply) <= 0) {
                log_error("errandd's answer cannot be read");
                return EXIT_FAILED;
        }
        if (!q->json) {
                print_lines(reply);
                return EXIT_OK;
        }
        json_open_object(&w, NULL);
        json_add_string(&w, "reply", reply);
        json_close_object(&w);
        return json_print(&w);
}
