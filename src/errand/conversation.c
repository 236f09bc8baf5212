/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/signalfd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/conversation.h"
#include "errand/describe.h"
#include "errand/notices.h"
#include "errand/output.h"
#include "errand/sessions.h"
#include "errand/waiting.h"
#include "shared/bus-object.h"

#define LOOK_USEC (200 * USEC_PER_MSEC)

static bool json(const Conversation *c) {
        return c->listener.request->json;
}

/* A sentence of errand's own, between what the agent says. */
_printf_(2, 3) static void tell(Conversation *c, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *shown = text ? text_for_terminal(text) : NULL;

        update_printer_end_line(&c->printer);
        log_info("session %s: %s", c->id, shown ?: "out of memory");
}

static void tell_event(Conversation *c, const char *event) {
        JsonWriter w = {};

        update_printer_begin(&c->printer, &w, event);
        update_printer_end(&c->printer, &w);
}

static void leave(Conversation *c, int code) {
        update_printer_end_line(&c->printer);
        listener_leave(&c->listener, code);
}

/* What is written is not read, or not stored. */
static void check_output(Conversation *c) {
        if (c->printer.error != 0)
                listener_leave(&c->listener, output_flush() != EXIT_OK || c->printer.error != EPIPE ? EXIT_FAILED : EXIT_OK);
}

/* ---- ends ---- */

/* The end of the turn was told while nobody listened. */
static void leave_unseen(Conversation *c) {
        update_printer_end_line(&c->printer);
        log_error("session %s: the turn has ended while errandd did not listen, so that nobody can say here how; errand session logs %s prints what was said",
                  c->id, c->id);
        leave(c, EXIT_FAILED);
}

static void session_over(Conversation *c, const char *text) {
        update_printer_end_line(&c->printer);
        if (c->prompt)
                log_error("session %s: it has ended before the turn did%s%s", c->id, *text ? ": " : "", text);
        else if (!json(c))
                tell(c, "it has ended%s%s", *text ? ": " : "", text);
        leave(c, c->prompt ? EXIT_FAILED : EXIT_OK);
}

/* ---- the prompt ---- */

int conversation_send(Connection *c, const char *id, const char *text, uint64_t *ret_number) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = session_call(c, id, "Prompt", "the prompt was not taken", &m, "s", text);

        if (r == EXIT_OK && sd_bus_message_read_basic(m, 't', ret_number) < 0) {
                log_error("errandd took the prompt and did not say which it is");
                return EXIT_FAILED;
        }
        return r;
}

/* From here on Ctrl-C is the turn's; before, it ends this program. */
static int catch_interrupts(void) {
        sigset_t set;
        int fd;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGINT);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? negative_errno() : fd;
}

static int send(Conversation *c) {
        int r = conversation_send(c->listener.connection, c->id, c->prompt, &c->number);

        if (r != EXIT_OK)
                return r;
        c->sent = true;
        c->listener.interrupts = catch_interrupts();
        c->listener.wake = now_monotonic() + WAITING_USEC;
        return EXIT_OK;
}

static int look_again(Conversation *c) {
        _cleanup_(description_done) Description d = {};
        int r = describe(c->listener.connection, c->id, &d);

        if (r != EXIT_OK)
                return r;
        if (description_ended(&d))
                session_over(c, "");
        else if (c->prompt && d.turn != UINT64_MAX && (d.turn > c->number || (d.turn == 0 && d.queued == 0)))
                leave_unseen(c);
        else if (c->prompt && d.turn == c->number)
                c->started = true;
        else if (c->prompt && d.turn == UINT64_MAX) /* errandd has to find out itself */
                c->listener.wake = now_monotonic() + LOOK_USEC;
        c->looking = c->prompt && d.turn == UINT64_MAX;
        return EXIT_OK;
}

static int begin(Conversation *c) {
        _cleanup_(description_done) Description d = {};
        int r;

        if (c->prompt)
                return send(c);
        r = describe(c->listener.connection, c->id, &d);
        if (r != EXIT_OK)
                return r;
        if (description_ended(&d)) {
                log_error("session %s has ended; errand session logs %s prints what was said", c->id, c->id);
                return EXIT_FAILED;
        }
        if (!streq(d.protocol, "acp")) {
                log_error("session %s has no conversation (it was made without --protocol acp); errand session logs --follow %s shows what it writes", c->id,
                          c->id);
                return EXIT_FAILED;
        }
        if (json(c))
                tell_event(c, "listening");
        return EXIT_OK;
}

static int on_ready(bool again, void *userdata) {
        Conversation *c = userdata;

        return again && (c->sent || !c->prompt) ? look_again(c) : begin(c);
}

/* ---- what errandd tells ---- */

static void end_of_turn(Conversation *c, const Update *u) {
        bool good = streq(u->reason, "end_turn");

        if (json(c))
                update_printer_show(&c->printer, u);
        else if (!good) {
                _cleanup_free_ char *text = text_for_terminal(u->text), *reason = text_for_terminal(turn_end_text(u));

                update_printer_end_line(&c->printer);
                log_error("session %s: the turn is over: %s%s%s", c->id, reason ?: "", text && *text ? ": " : "", text ?: "");
        }
        leave(c, good ? EXIT_OK : EXIT_FAILED);
}

/* Of what is told of a session, what the prompt that was sent here brought about. */
static void on_own_update(Conversation *c, const Update *u) {
        switch (u->kind) {
        case UPDATE_READY:
                break;
        case UPDATE_QUEUED:
                if (json(c) && u->prompt == c->number)
                        update_printer_show(&c->printer, u);
                break;
        case UPDATE_TURN_STARTED:
                if (u->prompt > c->number) {
                        leave_unseen(c);
                        break;
                }
                c->started = u->prompt == c->number;
                if (c->started)
                        c->listener.wake = 0;
                if (json(c) && c->started)
                        update_printer_show(&c->printer, u);
                break;
        case UPDATE_TURN_ENDED:
                if (u->prompt == c->number)
                        end_of_turn(c, u);
                else if (u->prompt > c->number)
                        leave_unseen(c);
                break;
        case UPDATE_MISSED:
                update_printer_show(&c->printer, u);
                (void) look_again(c);
                break;
        default:
                if (c->started)
                        update_printer_show(&c->printer, u);
                break;
        }
}

static void on_update(Conversation *c, sd_bus_message *m) {
        Update u;

        if (update_read(m, &u) < 0)
                return;
        if (c->prompt)
                on_own_update(c, &u);
        else
                update_printer_show(&c->printer, &u);
}

static void on_refused(Conversation *c, sd_bus_message *m) {
        char text[REFUSED_TEXT_MAX];
        JsonWriter w = {};
        const char *host;
        uint16_t port;
        uint32_t count;

        if (sd_bus_message_read(m, "squ", &host, &port, &count) < 0)
                return;
        if (!json(c)) {
                tell(c, "%s", refused_text(c->id, host, port, text));
                return;
        }
        update_printer_begin(&c->printer, &w, "refused");
        json_add_string(&w, "host", host);
        json_add_u64(&w, "port", port);
        json_add_u64(&w, "count", count);
        update_printer_end(&c->printer, &w);
}

static void on_notice(Conversation *c, sd_bus_message *m) {
        const char *kind, *text;
        JsonWriter w = {};

        /* A refused host is told by EgressRefused. */
        if (sd_bus_message_read(m, "ss", &kind, &text) < 0 || streq(kind, "egress"))
                return;
        if (!json(c)) {
                tell(c, "%s", text);
                return;
        }
        update_printer_begin(&c->printer, &w, "notice");
        json_add_string(&w, "kind", kind);
        json_add_string(&w, "text", text);
        update_printer_end(&c->printer, &w);
}

static void on_exited(Conversation *c, sd_bus_message *m) {
        _cleanup_(description_done) Description d = {};
        _cleanup_free_ char *text = NULL;
        char how[EXIT_TEXT_MAX];
        const char *reason;
        JsonWriter w = {};
        int32_t status;

        if (sd_bus_message_read(m, "si", &reason, &status) < 0)
                return;
        if (json(c)) {
                update_printer_begin(&c->printer, &w, "exited");
                json_add_string(&w, "reason", reason);
                json_add_u64(&w, "status", (uint64_t) MAX(status, 0));
                update_printer_end(&c->printer, &w);
        }
        if (streq(reason, "setup") && describe(c->listener.connection, c->id, &d) == EXIT_OK && *d.text)
                text = text_for_terminal(d.text);
        session_over(c, text ?: exit_text(reason, status, d.started > 0, how));
}

static void on_signal(sd_bus_message *m, const char *interface, const char *member, void *userdata) {
        Conversation *c = userdata;
        BusObject o;

        if (!streq(interface, BUS_SESSION_INTERFACE) || bus_object_parse(sd_bus_message_get_path(m), &o) < 0 || o.kind != BUS_OBJECT_SESSION ||
            !streq(o.session, c->id))
                return;
        if (streq(member, "Update"))
                on_update(c, m);
        else if (streq(member, "EgressRefused"))
                on_refused(c, m);
        else if (streq(member, "Notice"))
                on_notice(c, m);
        else if (streq(member, "Exited"))
                on_exited(c, m);
        check_output(c);
}

static void on_event(ListenerEvent event, void *userdata) {
        static const struct {
                const char *word, *text;
        } events[] = {
                [LISTENER_GONE] = {"errandd-gone", "errandd went away; the session goes on, and errandd is waited for"},
                [LISTENER_ENDED] = {"errandd-gone", "errandd went away, and the session ended with it"},
                [LISTENER_BACK] = {"errandd-back", "errandd is back"},
                [LISTENER_MISSED] = {"events-lost", "something is left out: it came faster than it was read"},
        };
        Conversation *c = userdata;

        if (json(c))
                tell_event(c, events[event].word);
        else
                tell(c, "%s", events[event].text);
        if (event == LISTENER_ENDED)
                leave(c, EXIT_NO_DAEMON);
        check_output(c);
}

static void tell_wait(Conversation *c) {
        _cleanup_(description_done) Description d = {};

        if (describe(c->listener.connection, c->id, &d) == EXIT_OK && *d.waiting)
                tell(c, "the prompt waits for %s (timeouts.startupMs)", d.waiting);
        else
                tell(c, "the prompt waits for its turn; another one runs, in this session or elsewhere (limits.maxConcurrentTurns)");
}

static void on_woken(void *userdata) {
        Conversation *c = userdata;

        if (c->looking) {
                int r = look_again(c);

                if (r != EXIT_OK && r != EXIT_NO_DAEMON)
                        leave(c, r);
        } else if (!c->started && !json(c))
                tell_wait(c);
}

/* ---- Ctrl-C ---- */

static int on_interrupt_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Conversation *c = userdata;

        if (e && !c->listener.leaving) {
                update_printer_end_line(&c->printer);
                (void) bus_failure(e, -sd_bus_message_get_errno(m), "session %s: the turn was not interrupted", c->id);
        }
        return 0;
}

static void on_interrupted(void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Conversation *c = userdata;
        int r;

        if (c->interrupted) {
                tell(c, "left; what the agent does goes on until it ends, and errand follow %s shows it", c->id);
                leave(c, EXIT_FAILED);
                return;
        }
        c->interrupted = true;
        tell(c, "interrupting the turn; a second Ctrl-C leaves without waiting for it");
        r = connection_new_call(c->listener.connection, bus_session_path(c->id).text, BUS_SESSION_INTERFACE, "Interrupt", &m);
        if (r >= 0)
                r = sd_bus_call_async(c->listener.connection->bus, NULL, m, on_interrupt_answer, c, UINT64_MAX);
        if (r < 0)
                log_error_errno(r, "session %s: the turn was not interrupted: %m", c->id);
}

int conversation_run(const Request *q, const char *prompt) {
        static const ListenerCalls calls = {.ready = on_ready, .signal = on_signal, .event = on_event, .woken = on_woken, .interrupted = on_interrupted};
        Conversation c = {
                .listener = {.request = q, .calls = &calls, .interrupts = -EBADF},
                .printer = {.request = q, .answer = prompt && !q->json},
                .id = q->operands[0],
                .prompt = prompt,
        };

        c.listener.userdata = &c;
        int r = listener_run(&c.listener, CONNECT_START_STATE | (prompt ? CONNECT_ASKS : 0));
        safe_close(c.listener.interrupts);
        return r;
}
