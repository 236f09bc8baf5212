/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errand/create.h"
#include "errand/describe.h"
#include "errand/json-output.h"
#include "errand/sessions.h"
#include "errand/table.h"
#include "errand/transcript.h"
#include "errand/verbs.h"

#define FOLLOW_MSEC 200 /* a transcript grows without telling */

int verb_session_create(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *id = NULL;
        int r;

        r = connection_open(q, CONNECT_START | CONNECT_START_SAYS | CONNECT_ASKS, &c);
        if (r == EXIT_OK)
                r = create_session(c, q, q->keep_terminal, NULL, &id);
        if (r != EXIT_OK)
                return r;
        if (q->json) {
                json_open_object(&w, NULL);
                json_add_string(&w, "id", id);
                json_close_object(&w);
                return json_print(&w);
        }
        printf("%s\n", id);
        return EXIT_OK;
}

int verb_session_start(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(description_done) Description d = {};
        int r;

        r = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (r != EXIT_OK)
                return r;
        if (!q->attach)
                return session_call(c, q->operands[0], "Start", "Failed to start it", NULL, NULL);
        r = describe(c, q->operands[0], &d);
        if (r != EXIT_OK)
                return r;
        return attach_session(c, q->operands[0], ATTACH_START | ATTACH_OWNER | (d.interactive ? ATTACH_TERMINAL : 0), NULL);
}

int sessions_act(const Request *q, int (*act)(Connection *c, const char *id, const Request *q)) {
        _cleanup_(connection_freep) Connection *c = NULL;
        int code, r;

        code = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (code != EXIT_OK)
                return code;
        for (size_t i = 0; i < q->n_operands; i++) {
                r = act(c, q->operands[i], q);
                if (code == EXIT_OK)
                        code = r;
                if (r == EXIT_NO_DAEMON)
                        break;
        }
        return code;
}

static int stop_one(Connection *c, const char *id, _unused_ const Request *q) {
        return session_call(c, id, "Stop", "Failed to stop it", NULL, NULL);
}

int verb_session_stop(const Request *q) {
        return sessions_act(q, stop_one);
}

int verb_session_interrupt(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        int r = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);

        return r == EXIT_OK ? session_call(c, q->operands[0], "Interrupt", "Failed to interrupt its turn", NULL, NULL) : r;
}

static int parse_signal(const char *s) {
        uint64_t n;

        if (parse_u64(s, (uint64_t) SIGRTMAX, &n) >= 0 && n > 0)
                return (int) n;
        s = startswith(s, "SIG") ?: s;
        for (int i = 1; i < SIGRTMIN; i++)
                if (streq_ptr(sigabbrev_np(i), s))
                        return i;
        return -EINVAL;
}

static int kill_one(Connection *c, const char *id, const Request *q) {
        return session_call(c, id, "Kill", "Failed to signal it", NULL, "i", parse_signal(q->signal ?: "TERM"));
}

int verb_session_kill(const Request *q) {
        if (q->signal && parse_signal(q->signal) < 0) {
                log_error("--signal %.32s: there is no such signal; names are those of kill -l, such as TERM or KILL", q->signal);
                return EXIT_FAILED;
        }
        return sessions_act(q, kill_one);
}

static int attach_failure(int code) {
        return code == EXIT_OK ? EXIT_OK : code == EXIT_NOT_PERMITTED ? EXIT_ATTACH_NOT_PERMITTED : EXIT_NOT_SET_UP;
}

int verb_session_attach(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(description_done) Description d = {};
        const char *id = q->operands[0];
        int r;

        r = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (r == EXIT_OK)
                r = describe(c, id, &d);
        if (r != EXIT_OK)
                return attach_failure(r);
        if (description_ended(&d)) {
                log_info("session %s has ended (%s, %d); errand session logs %s prints what it wrote", id, *d.reason ? d.reason : d.state, d.status, id);
                return exit_code_of(d.reason, d.status);
        }
        if (streq(d.state, "created")) {
                log_error("session %s has not started; errand session start --attach %s does both", id, id);
                return EXIT_NOT_SET_UP;
        }
        if (streq(d.protocol, "acp")) {
                log_error("the agent of session %s is talked to: errand prompt %s, and errand follow %s shows what is said", id, id, id);
                return EXIT_NOT_SET_UP;
        }
        if (!d.interactive) {
                log_error("session %s has no terminal; errand session logs --follow %s shows what it writes", id, id);
                return EXIT_NOT_SET_UP;
        }
        if (isatty(STDIN_FILENO))
                log_info("session %s; Ctrl-] d leaves it running", id);
        return attach_session(c, id, ATTACH_TERMINAL, NULL);
}

/* Who looks into the transcript wants to know why there is none. */
static void say_nothing_ran(const char *id, const Description *d) {
        _cleanup_free_ char *text = text_for_terminal(d->text);

        if (streq(d->reason, "setup"))
                log_info("session %s wrote nothing, since %s: %s", id, d->started > 0 ? "its agent could not be talked to" : "nothing ran",
                         text && *text ? text : "no reason was given");
}

int verb_session_logs(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        const char *id = q->operands[0];
        bool more, ended = false;
        uint64_t offset = 0;
        int r;

        r = connection_open(q, CONNECT_START_STATE, &c);
        while (r == EXIT_OK) {
                _cleanup_(description_done) Description d = {};

                r = transcript_print(c, id, &offset, &more);
                if (r != EXIT_OK || more)
                        continue;
                if (ended || (!q->follow && offset > 0))
                        break;
                /* Once more after the end: what came between is read, too. */
                r = describe(c, id, &d);
                ended = !q->follow || (r == EXIT_OK && description_ended(&d));
                if (ended && r == EXIT_OK && offset == 0)
                        say_nothing_ran(id, &d);
                if (!ended)
                        (void) poll(NULL, 0, FOLLOW_MSEC);
        }
        return r;
}

int verb_session_list(const Request *q) {
        return sessions_list(q, q->all);
}

int verb_session_show(const Request *q) {
        return session_show(q, 0);
}
