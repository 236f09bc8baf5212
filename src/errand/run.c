/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"
#include "errand/attach.h"
#include "errand/create.h"
#include "errand/describe.h"
#include "errand/session-file.h"
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

/* A session of that name from before. EXIT_NOT_THERE: there is none, or none any more. */
static int find_again(Connection *c, const SessionFile *f, AttachFlags *flags) {
        _cleanup_(description_done) Description d = {};

        int r = describe_if_there(c, f->id, &d);
        if (r != EXIT_OK)
                return r;
        if (d.owner != getuid()) {
                log_error("session %s is there already, and belongs to uid %u; errand threads rm %s removes it, or give %s another name", f->id, d.owner,
                          f->id, f->request.file);
                return EXIT_NOT_PERMITTED;
        }
        if (!description_ended(&d) && !streq(d.state, "created")) {
                log_info("session %s runs already, and is followed", f->id);
                *flags &= ~(AttachFlags) ATTACH_START;
                return EXIT_OK;
        }
        if (d.created >= f->changed)
                return EXIT_OK;
        log_info("%s was changed since session %s was made of it, so another is made; record and receipts of that one are removed", f->request.file, f->id);
        r = session_call(c, f->id, "Collect", "Failed to remove its record", NULL, NULL);
        return r == EXIT_OK ? EXIT_NOT_THERE : r;
}

/* As a unit of a service manager has it: with an identity, which is the file's name, and without a terminal. */
static int run_file(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(session_file_done) SessionFile f = {};
        _cleanup_free_ char *id = NULL;
        AttachFlags flags = ATTACH_START | ATTACH_OWNER | ATTACH_SERVICE | (q->quiet ? ATTACH_QUIET : 0);

        log_set_target(LOG_TARGET_CONSOLE); /* its unit has no priorities read from lines, which are the session's as well */
        if (session_file_read(q, &f) != EXIT_OK || connection_open(&f.request, CONNECT_START | CONNECT_START_SAYS | CONNECT_ASKS, &c) != EXIT_OK)
                return EXIT_NOT_SET_UP;
        int r = find_again(c, &f, &flags);
        if (r == EXIT_NOT_THERE)
                r = create_session(c, &f.request, false, NULL, &id);
        return r == EXIT_OK ? attach_session(c, f.id, flags, NULL) : EXIT_NOT_SET_UP;
}

int verb_run(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_free_ char *id = NULL;
        AttachPipes pipes = {-EBADF, -EBADF, -EBADF};
        bool interactive = create_interactive(q), remove = q->remove;
        AttachFlags flags = ATTACH_START | ATTACH_OWNER;
        int code;

        if (q->file)
                return run_file(q);
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
