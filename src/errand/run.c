/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/attach.h"
#include "errand/create.h"
#include "errand/describe.h"
#include "errand/verbs.h"

/* What a session that did not start left behind: the code of a command that was not found, or cannot be executed; or a session that was not even
 * tried, which nobody will miss. */
static int setup_code(Connection *c, const char *id, int code, bool *remove) {
        _cleanup_(description_done) Description d = {};

        if (code != EXIT_NOT_SET_UP || describe(c, id, &d) != EXIT_OK)
                return code;
        if (streq(d.state, "created")) {
                *remove = true;
                return code;
        }
        return description_ended(&d) ? exit_code_of(d.reason, d.status) : code;
}

static int remove_session(Connection *c, const char *id, int code) {
        int r;

        if (code == EXIT_DETACHED) {
                log_info("session %s goes on, so its record is not removed", id);
                return code;
        }
        r = session_call(c, id, "Collect", "Failed to remove its record", NULL, NULL);
        return r == EXIT_OK || code != EXIT_OK ? code : EXIT_FAILED;
}

int verb_run(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_free_ char *id = NULL;
        AttachPipes pipes = {-EBADF, -EBADF, -EBADF};
        bool interactive = create_interactive(q), remove = q->remove;
        AttachFlags flags = ATTACH_START | ATTACH_OWNER;
        int code;

        if (connection_open(q, CONNECT_START | CONNECT_START_SAYS | CONNECT_ASKS, &c) != EXIT_OK)
                return EXIT_NOT_SET_UP;
        if (create_session(c, q, interactive, &pipes, &id) != EXIT_OK)
                return EXIT_NOT_SET_UP;
        flags |= interactive ? ATTACH_TERMINAL : 0;
        flags |= q->quiet ? ATTACH_QUIET : 0;
        if (interactive && !q->quiet)
                log_info("session %s; Ctrl-] d leaves it running", id);
        code = attach_session(c, id, flags, &pipes);
        code = setup_code(c, id, code, &remove);
        return remove ? remove_session(c, id, code) : code;
}
