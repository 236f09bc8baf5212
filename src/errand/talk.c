/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/signalfd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/describe.h"
#include "errand/notices.h"
#include "errand/sessions.h"
#include "errand/talk.h"
#include "errand/waiting.h"
#include "shared/bus-object.h"

#define LOOK_USEC (200 * USEC_PER_MSEC)

static bool json(const Talk *t) {
        return t->listener.request->json;
}

/* A sentence of errand's own, between what the agent says. */
_printf_(2, 3) static void say(Talk *t, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *shown = text ? text_for_terminal(text) : NULL;

        update_printer_end_line(&t->printer);
        log_info("session %s: %s", t->id, shown ?: "out of memory");
}

static void tell_event(Talk *t, const char *event) {
        JsonWriter w = {};

        update_printer_begin(&t->printer, &w, event);
        update_printer_end(&t->printer, &w);
}

static void leave(Talk *t, int code) {
        update_printer_end_line(&t->printer);
        listener_leave(&t->listener, code);
}

/* What is written is not read, or not stored. */
static void check_output(Talk *t) {
        if (t->printer.error == 0)
                return;
        if (t->printer.error != EPIPE)
                log_error_errno(t->printer.error, "Failed to write to standard output: %m");
        listener_leave(&t->listener, t->printer.error == EPIPE ? EXIT_OK : EXIT_FAILED);
}

/* ---- ends ---- */

/* The end of the turn was told while nobody listened. */
static void leave_unseen(Talk *t) {
        update_printer_end_line(&t->printer);
        log_error("session %s: the turn has ended while errandd did not listen, so that nobody can say here how; errand session logs %s prints what was said",
                  t->id, t->id);
        leave(t, EXIT_FAILED);
}

static void session_over(Talk *t, const char *text) {
        update_printer_end_line(&t->printer);
        if (t->prompt)
                log_error("session %s: it has ended before the turn did%s%s", t->id, *text ? ": " : "", text);
        else if (!json(t))
                say(t, "it has ended%s%s", *text ? ": " : "", text);
        leave(t, t->prompt ? EXIT_FAILED : EXIT_OK);
}

/* ---- the prompt ---- */

int talk_send(Connection *c, const char *id, const char *text, uint64_t *ret_number) {
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

static int send(Talk *t) {
        int r = talk_send(t->listener.connection, t->id, t->prompt, &t->number);

        if (r != EXIT_OK)
                return r;
        t->sent = true;
        t->listener.interrupts = catch_interrupts();
        t->listener.wake = now_monotonic() + WAITING_USEC;
        return EXIT_OK;
}

static int look_again(Talk *t) {
        _cleanup_(description_done) Description d = {};
        int r = describe(t->listener.connection, t->id, &d);

        if (r != EXIT_OK)
                return r;
        if (description_ended(&d))
                session_over(t, "");
        else if (t->prompt && d.turn != UINT64_MAX && (d.turn > t->number || (d.turn == 0 && d.queued == 0)))
                leave_unseen(t);
        else if (t->prompt && d.turn == t->number)
                t->started = true;
        else if (t->prompt && d.turn == UINT64_MAX) /* errandd has to find out itself */
                t->listener.wake = now_monotonic() + LOOK_USEC;
        t->looking = t->prompt && d.turn == UINT64_MAX;
        return EXIT_OK;
}

static int begin(Talk *t) {
        _cleanup_(description_done) Description d = {};
        int r;

        if (t->prompt)
                return send(t);
        r = describe(t->listener.connection, t->id, &d);
        if (r != EXIT_OK)
                return r;
        if (description_ended(&d)) {
                log_error("session %s has ended; errand session logs %s prints what was said", t->id, t->id);
                return EXIT_FAILED;
        }
        if (!streq(d.protocol, "acp")) {
                log_error("session %s has no conversation (it was made without --protocol acp); errand session logs --follow %s shows what it writes", t->id,
                          t->id);
                return EXIT_FAILED;
        }
        if (json(t))
                tell_event(t, "listening");
        return EXIT_OK;
}

static int on_ready(bool again, void *userdata) {
        Talk *t = userdata;

        return again && (t->sent || !t->prompt) ? look_again(t) : begin(t);
}

/* ---- what errandd tells ---- */

static void end_of_turn(Talk *t, const Update *u) {
        bool good = streq(u->reason, "end_turn");

        if (json(t))
                update_printer_show(&t->printer, u);
        else if (!good) {
                _cleanup_free_ char *text = text_for_terminal(u->text), *reason = text_for_terminal(turn_end_text(u));

                update_printer_end_line(&t->printer);
                log_error("session %s: the turn is over: %s%s%s", t->id, reason ?: "", text && *text ? ": " : "", text ?: "");
        }
        leave(t, good ? EXIT_OK : EXIT_FAILED);
}

/* Of what is told of a session, what the prompt that was sent here brought about. */
static void on_own_update(Talk *t, const Update *u) {
        switch (u->kind) {
        case UPDATE_READY:
                break;
        case UPDATE_QUEUED:
                if (json(t) && u->prompt == t->number)
                        update_printer_show(&t->printer, u);
                break;
        case UPDATE_TURN_STARTED:
                if (u->prompt > t->number) {
                        leave_unseen(t);
                        break;
                }
                t->started = u->prompt == t->number;
                if (t->started)
                        t->listener.wake = 0;
                if (json(t) && t->started)
                        update_printer_show(&t->printer, u);
                break;
        case UPDATE_TURN_ENDED:
                if (u->prompt == t->number)
                        end_of_turn(t, u);
                else if (u->prompt > t->number)
                        leave_unseen(t);
                break;
        case UPDATE_MISSED:
                update_printer_show(&t->printer, u);
                (void) look_again(t);
                break;
        default:
                if (t->started)
                        update_printer_show(&t->printer, u);
                break;
        }
}

static void on_update(Talk *t, sd_bus_message *m) {
        Update u;

        if (update_read(m, &u) < 0)
                return;
        if (t->prompt)
                on_own_update(t, &u);
        else
                update_printer_show(&t->printer, &u);
}

static void on_refused(Talk *t, sd_bus_message *m) {
        char text[REFUSED_TEXT_MAX];
        JsonWriter w = {};
        const char *host;
        uint16_t port;
        uint32_t count;

        if (sd_bus_message_read(m, "squ", &host, &port, &count) < 0)
                return;
        if (!json(t)) {
                say(t, "%s", refused_text(t->id, host, port, text));
                return;
        }
        update_printer_begin(&t->printer, &w, "refused");
        json_add_string(&w, "host", host);
        json_add_u64(&w, "port", port);
        json_add_u64(&w, "count", count);
        update_printer_end(&t->printer, &w);
}

static void on_notice(Talk *t, sd_bus_message *m) {
        const char *kind, *text;
        JsonWriter w = {};

        /* A refused host is told by EgressRefused. */
        if (sd_bus_message_read(m, "ss", &kind, &text) < 0 || streq(kind, "egress"))
                return;
        if (!json(t)) {
                say(t, "%s", text);
                return;
        }
        update_printer_begin(&t->printer, &w, "notice");
        json_add_string(&w, "kind", kind);
        json_add_string(&w, "text", text);
        update_printer_end(&t->printer, &w);
}

static void on_exited(Talk *t, sd_bus_message *m) {
        _cleanup_(description_done) Description d = {};
        _cleanup_free_ char *text = NULL;
        char how[EXIT_TEXT_MAX];
        const char *reason;
        JsonWriter w = {};
        int32_t status;

        if (sd_bus_message_read(m, "si", &reason, &status) < 0)
                return;
        if (json(t)) {
                update_printer_begin(&t->printer, &w, "exited");
                json_add_string(&w, "reason", reason);
                json_add_u64(&w, "status", (uint64_t) MAX(status, 0));
                update_printer_end(&t->printer, &w);
        }
        if (streq(reason, "setup") && describe(t->listener.connection, t->id, &d) == EXIT_OK && *d.text)
                text = text_for_terminal(d.text);
        session_over(t, text ?: exit_text(reason, status, d.started > 0, how));
}

static void on_signal(sd_bus_message *m, const char *interface, const char *member, void *userdata) {
        Talk *t = userdata;
        BusObject o;

        if (!streq(interface, BUS_SESSION_INTERFACE) || bus_object_parse(sd_bus_message_get_path(m), &o) < 0 || o.kind != BUS_OBJECT_SESSION ||
            !streq(o.session, t->id))
                return;
        if (streq(member, "Update"))
                on_update(t, m);
        else if (streq(member, "EgressRefused"))
                on_refused(t, m);
        else if (streq(member, "Notice"))
                on_notice(t, m);
        else if (streq(member, "Exited"))
                on_exited(t, m);
        check_output(t);
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
        Talk *t = userdata;

        if (json(t))
                tell_event(t, events[event].word);
        else
                say(t, "%s", events[event].text);
        if (event == LISTENER_ENDED)
                leave(t, EXIT_NO_DAEMON);
        check_output(t);
}

static void on_woken(void *userdata) {
        Talk *t = userdata;

        if (t->looking) {
                int r = look_again(t);

                if (r != EXIT_OK && r != EXIT_NO_DAEMON)
                        leave(t, r);
        } else if (!t->started && !json(t))
                say(t, "the prompt waits for its turn; another one runs, in this session or elsewhere (limits.maxConcurrentTurns)");
}

/* ---- Ctrl-C ---- */

static int on_interrupt_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Talk *t = userdata;

        if (e && !t->listener.leaving) {
                update_printer_end_line(&t->printer);
                (void) bus_failure(e, -sd_bus_message_get_errno(m), "session %s: the turn was not interrupted", t->id);
        }
        return 0;
}

static void on_interrupted(void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Talk *t = userdata;
        int r;

        if (t->interrupted) {
                say(t, "left; what the agent does goes on until it ends, and errand follow %s shows it", t->id);
                leave(t, EXIT_FAILED);
                return;
        }
        t->interrupted = true;
        say(t, "interrupting the turn; a second Ctrl-C leaves without waiting for it");
        r = connection_new_call(t->listener.connection, bus_session_path(t->id).text, BUS_SESSION_INTERFACE, "Interrupt", &m);
        if (r >= 0)
                r = sd_bus_call_async(t->listener.connection->bus, NULL, m, on_interrupt_answer, t, UINT64_MAX);
        if (r < 0)
                log_error_errno(r, "session %s: the turn was not interrupted: %m", t->id);
}

int talk_run(const Request *q, const char *prompt) {
        static const ListenerCalls calls = {.ready = on_ready, .signal = on_signal, .event = on_event, .woken = on_woken, .interrupted = on_interrupted};
        Talk t = {
                .listener = {.request = q, .calls = &calls, .interrupts = -EBADF},
                .printer = {.request = q, .answer = prompt && !q->json},
                .id = q->operands[0],
                .prompt = prompt,
        };

        t.listener.userdata = &t;
        int r = listener_run(&t.listener, CONNECT_START_STATE | (prompt ? CONNECT_ASKS : 0));
        safe_close(t.listener.interrupts);
        return r;
}
