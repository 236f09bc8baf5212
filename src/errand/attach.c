/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/attach-private.h"
#include "errand/describe.h"
#include "errand/message-bus.h"
#include "errand/terminal.h"
#include "errand/waiting.h"

#define DRAIN_USEC (2 * USEC_PER_SEC) /* for output that is on its way when the command has ended */

void attachment_leave(Attachment *a, int code) {
        if (a->leaving)
                return;
        a->leaving = true;
        a->code = code;
}

int attachment_notice(Attachment *a, const char *text) {
        if (a->flags & ATTACH_QUIET)
                return 0;
        if (!a->shown) {
                log_info("%s", text);
                return 0;
        }
        return notices_add(&a->notices, text);
}

/* ---- the end ---- */

static int on_drained(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Attachment *a = userdata;

        attachment_leave(a, a->code);
        return 0;
}

/* The command has ended: what it wrote last is still to be shown. */
static void drain(Attachment *a, int code) {
        a->code = code;
        if (a->transcript && code != EXIT_LOST)
                transcript_finish(a->transcript);
        if (a->open == 0) {
                attachment_leave(a, code);
                return;
        }
        if (a->drain)
                return;
        if (sd_event_add_time_relative(a->event, &a->drain, CLOCK_MONOTONIC, DRAIN_USEC, 0, on_drained, a) < 0)
                attachment_leave(a, code);
}

/* ---- calls ---- */

static int call(Attachment *a, const char *member, sd_bus_message_handler_t done, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        va_list ap;
        int r;

        r = connection_new_call(a->connection, a->path, BUS_SESSION_INTERFACE, member, &m);
        /* Nobody types a password into a terminal that is shown. */
        if (r >= 0 && a->shown)
                r = sd_bus_message_set_allow_interactive_authorization(m, false);
        if (r >= 0 && types && *types) {
                va_start(ap, types);
                r = sd_bus_message_appendv(m, types, ap);
                va_end(ap);
        }
        return r < 0 ? r : sd_bus_call_async(a->connection->bus, NULL, m, done, a, UINT64_MAX);
}

static void resize(Attachment *a) {
        uint16_t rows, columns;

        if ((a->flags & ATTACH_TERMINAL) && terminal_size(STDOUT_FILENO, &rows, &columns) >= 0)
                (void) call(a, "Resize", NULL, "qq", rows, columns);
}

static int attached(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Attachment *a = userdata;
        int fd, r;

        if (e) {
                if (a->exited)
                        return 0;
                r = bus_failure(e, -sd_bus_message_get_errno(m), "Failed to attach to session %s", a->id);
                attachment_leave(a, r == EXIT_NOT_PERMITTED ? EXIT_ATTACH_NOT_PERMITTED : r == EXIT_NO_DAEMON ? EXIT_LOST : EXIT_NOT_SET_UP);
                return 0;
        }
        r = sd_bus_message_read_basic(m, 'h', &fd);
        if (r >= 0) {
                a->terminal = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                r = a->terminal < 0 ? negative_errno() : attachment_show_terminal(a);
        }
        if (r < 0) {
                terminal_restore();
                log_error_errno(r, "Failed to attach this terminal to session %s: %m", a->id);
                if (a->flags & ATTACH_START)
                        (void) call(a, "Stop", NULL, NULL); /* nobody would see it */
                attachment_leave(a, EXIT_NOT_SET_UP);
                return 0;
        }
        resize(a);
        return 0;
}

/* A service manager that waits for it. */
static void tell_manager(const Attachment *a, const char *more, const char *what) {
        if (a->flags & ATTACH_SERVICE)
                (void) sd_notifyf(false, "%sSTATUS=Session %s %s", more, a->id, what);
}

/* The command alone gets it, where Ctrl-C at a terminal of its own goes to what it started, too: a shell that waits for a program goes on as if
 * nothing was. */
static void pass_on(Attachment *a, int signal) {
        _cleanup_free_ char *line = NULL;

        (void) call(a, "Kill", NULL, "i", signal);
        if (signal == SIGINT && ++a->interrupts == 2 &&
            asprintf(&line, "session %s: its command got SIGINT and runs on; to end it: errand session stop %s", a->id, a->id) >= 0)
                (void) attachment_notice(a, line);
}

static int attach(Attachment *a) {
        a->running = true;
        tell_manager(a, "READY=1\n", "runs");
        if (a->pending > 0)
                pass_on(a, a->pending);
        if (!(a->flags & ATTACH_TERMINAL))
                return 0;
        return call(a, "Attach", attached, "a{sv}", 0);
}

static int started(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Attachment *a = userdata;
        int r;

        a->starting = false;
        if (!e && a->exited) {
                tell_manager(a, "READY=1\n", "runs");
                drain(a, a->code);
                return 0;
        }
        if (!e) {
                r = attach(a);
                if (r < 0) {
                        log_error_errno(r, "Failed to attach to session %s: %m", a->id);
                        attachment_leave(a, EXIT_NOT_SET_UP);
                }
                return 0;
        }
        if (a->leaving || a->cancelled)
                return 0;
        r = bus_failure(e, -sd_bus_message_get_errno(m), "not started");
        attachment_leave(a, a->exited ? a->code : r == EXIT_NO_DAEMON ? EXIT_LOST : EXIT_NOT_SET_UP); /* it may have been started */
        return 0;
}

/* ---- what errandd says ---- */

static int on_exited(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Attachment *a = userdata;
        const char *reason;
        int32_t status;

        if (!connection_is_errandd(a->connection, m) || sd_bus_message_read(m, "si", &reason, &status) < 0 || a->exited)
                return 0;
        a->exited = true;
        if (streq(reason, "lost"))
                (void) attachment_notice(a, "the session was lost: nobody can say how its command ended");
        else if (streq(reason, "killed"))
                (void) attachment_notice(a, "the session's sandbox was killed, and its command with it");
        tell_manager(a, "", "has ended");
        a->code = a->cancelled ? a->code : exit_code_of(reason, status);
        if (!a->starting) /* else the answer to Start is on its way, and says why */
                drain(a, a->code);
        return 0;
}

static int on_notice(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Attachment *a = userdata;
        const char *kind, *text;

        if (!connection_is_errandd(a->connection, m) || sd_bus_message_read(m, "ss", &kind, &text) < 0)
                return 0;
        /* What was refused is told in words for a terminal by on_refused(). */
        if (!streq(kind, "egress"))
                (void) attachment_notice(a, text);
        return 0;
}

static int on_refused(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Attachment *a = userdata;
        const char *host;
        uint16_t port;
        uint32_t count;
        char text[REFUSED_TEXT_MAX];

        if (!connection_is_errandd(a->connection, m) || sd_bus_message_read(m, "squ", &host, &port, &count) < 0)
                return 0;
        (void) attachment_notice(a, refused_text(a->id, host, port, text));
        return 0;
}

static void look_whether_ended(Attachment *a);

/* Signals were lost. */
static int on_unsubscribed(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Attachment *a = userdata;

        if (!a->leaving && connection_is_errandd(a->connection, m) && manager_call(a->connection, "Subscribe", "Failed to listen to errandd", NULL, NULL) == EXIT_OK)
                look_whether_ended(a);
        return 0;
}

static int on_disconnected(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Attachment *a = userdata;

        if (a->exited || a->leaving)
                return 0;
        a->exited = true; /* with its errandd, in embedded mode */
        (void) attachment_notice(a, a->connection->mode == CONNECT_EMBEDDED ? "errandd went away, and the session ends with it" : "errandd went away");
        drain(a, EXIT_LOST);
        return 0;
}

/* errandd was restarted, or is: sessions go on without it, and who listened to it does so anew. */
static int on_owner(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Attachment *a = userdata;
        const char *name, *owner;

        /* Sent to us alone by whoever likes, one passes the rule: libsystemd takes any sender for a well-known name. */
        if (!streq_ptr(sd_bus_message_get_sender(m), BUS_DRIVER) ||
            sd_bus_message_read(m, "sss", &name, NULL, &owner) < 0 || !streq(name, BUS_NAME) || a->exited || a->leaving)
                return 0;
        if (!*owner) {
                (void) attachment_notice(a, "errandd went away; the session goes on, and how it ends is told when errandd is back");
                return 0;
        }
        if (connection_set_owner(a->connection, owner) == EXIT_OK &&
            manager_call(a->connection, "Subscribe", "Failed to listen to errandd", NULL, NULL) == EXIT_OK)
                look_whether_ended(a);
        return 0;
}

static int subscribe(Attachment *a) {
        static const struct {
                const char *path, *interface, *member;
                sd_bus_message_handler_t handler;
        } signals[] = {
                {NULL, BUS_SESSION_INTERFACE, "Exited", on_exited},
                {NULL, BUS_SESSION_INTERFACE, "Notice", on_notice},
                {NULL, BUS_SESSION_INTERFACE, "EgressRefused", on_refused},
                {BUS_ROOT, BUS_MANAGER_INTERFACE, "Unsubscribed", on_unsubscribed},
                {"/org/freedesktop/DBus/Local", "org.freedesktop.DBus.Local", "Disconnected", on_disconnected},
        };
        int r;

        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                r = sd_bus_match_signal(a->connection->bus, NULL, NULL, signals[i].path ?: a->path, signals[i].interface, signals[i].member,
                                        signals[i].handler, a);
                if (r < 0) {
                        log_error_errno(r, "Failed to listen to errandd: %m");
                        return EXIT_FAILED;
                }
        }
        if (a->connection->owner) {
                r = sd_bus_add_match(a->connection->bus, NULL, "type='signal',sender='" BUS_DRIVER "',member='NameOwnerChanged',arg0='" BUS_NAME
                                     "'", on_owner, a);
                if (r < 0) {
                        log_error_errno(r, "Failed to listen to the bus: %m");
                        return EXIT_FAILED;
                }
        }
        return manager_call(a->connection, "Subscribe", "Failed to listen to errandd", NULL, NULL);
}

/* ---- signals ---- */

static int stopped(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Attachment *a = userdata;

        attachment_leave(a, a->code);
        return 0;
}

/* That it has stopped is told by its end. */
static int refused_to_stop(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Attachment *a = userdata;

        if (e && !a->exited)
                (void) bus_failure(e, -sd_bus_message_get_errno(m), "Failed to stop session %s", a->id);
        return 0;
}

static void stop_here(Attachment *a) {
        terminal_restore();
        (void) raise(SIGSTOP);
        /* Continued. */
        if (a->shown && a->typing)
                (void) terminal_raw(STDIN_FILENO);
        terminal_undo(modes_undo(&a->modes, a->undo));
        resize(a);
}

static int on_signal(_unused_ sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        Attachment *a = userdata;
        int signal = (int) si->ssi_signo;

        switch (signal) {
        case SIGWINCH:
                resize(a);
                return 0;
        case SIGTSTP:
                stop_here(a);
                return 0;
        case SIGCONT:
                if (a->shown && a->typing)
                        (void) terminal_raw(STDIN_FILENO);
                resize(a);
                return 0;
        default:
                break;
        }
        if (!(a->flags & ATTACH_OWNER) || (signal == SIGHUP && (a->flags & ATTACH_TERMINAL))) {
                attachment_leave(a, EXIT_DETACHED);
                return 0;
        }
        if (a->running && (a->flags & ATTACH_SERVICE))
                (void) call(a, "Stop", refused_to_stop, NULL);
        else if (a->running)
                pass_on(a, signal);
        else if (a->pending == 0 && !a->told && !(a->flags & ATTACH_SERVICE))
                a->pending = signal; /* the command may be running already, and its trap waiting */
        else if (!a->cancelled) {
                log_info("stopping session %s, which has not started yet", a->id);
                a->cancelled = true;
                a->code = 128 + signal;
                (void) call(a, "Stop", stopped, NULL);
        } else
                attachment_leave(a, 128 + signal);
        return 0;
}

static int on_slow_described(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        _cleanup_free_ char *text = sd_bus_message_is_method_error(m, NULL) ? NULL : waiting_text(m), *line = NULL;
        Attachment *a = userdata;

        if (!a->starting || a->leaving || !text || !*text)
                return 0;
        if (asprintf(&line, "session %s: waiting for %s; Ctrl-C stops it", a->id, text) >= 0)
                (void) attachment_notice(a, line);
        a->told = true;
        return 0;
}

static int on_slow(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Attachment *a = userdata;

        if (a->starting)
                (void) call(a, "Describe", on_slow_described, NULL);
        return 0;
}

static int watch_signals(Attachment *a) {
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
        sigset_t set;
        int r = 0;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) sigaddset(&set, signals[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return negative_errno();
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(signals); i++)
                r = sd_event_add_signal(a->event, NULL, signals[i], on_signal, a);
        return r;
}

/* ---- all of it ---- */

static void attachment_done(Attachment *a) {
        terminal_restore();
        if (a->shown && a->code == EXIT_DETACHED && isatty(STDOUT_FILENO))
                (void) !write(STDOUT_FILENO, "\n", 1); /* the cursor is wherever the program left it */
        notices_show(&a->notices, a->id);
        attachment_close_streams(a);
        transcript_free(a->transcript);
        sd_event_source_disable_unref(a->drain);
        sd_event_source_disable_unref(a->slow);
        (void) sd_bus_detach_event(a->connection->bus);
        sd_event_unref(a->event);
}

static int prepare(Attachment *a) {
        int r;

        a->connection->listens = true;
        r = sd_event_new(&a->event);
        if (r >= 0)
                r = sd_event_add_time_relative(a->event, &a->slow, CLOCK_MONOTONIC, WAITING_USEC, 0, on_slow, a);
        if (r >= 0)
                r = sd_bus_attach_event(a->connection->bus, a->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = attachment_join_pipes(a);
        if (r < 0) {
                log_error_errno(r, "Failed to set up an event loop: %m");
                return EXIT_NOT_SET_UP;
        }
        r = a->flags & ATTACH_SERVICE ? transcript_new(a->connection, a->id, a->event, &a->transcript) : EXIT_OK;
        if (r == EXIT_OK)
                r = subscribe(a);
        /* From here on signals are events; before, while errandd may not answer, they end this program. */
        return r == EXIT_OK && watch_signals(a) < 0 ? EXIT_NOT_SET_UP : r;
}

/* The signal may have gone when nobody listened yet, or was refused for want of room. */
static void look_whether_ended(Attachment *a) {
        _cleanup_(description_done) Description d = {};

        if (describe(a->connection, a->id, &d) == EXIT_OK && description_ended(&d)) {
                a->exited = true;
                drain(a, exit_code_of(d.reason, d.status));
        }
}

static int run_loop(Attachment *a) {
        int r;

        if (a->flags & ATTACH_START)
                a->starting = (r = call(a, "Start", started, NULL)) >= 0;
        else {
                r = attach(a);
                if (r >= 0)
                        look_whether_ended(a);
        }
        /* Not sd_event_loop(): its end would close the bus, which is asked once more afterwards. */
        while (r >= 0 && !a->leaving)
                r = sd_event_run(a->event, UINT64_MAX);
        if (r < 0) {
                terminal_restore();
                log_error_errno(r, "Failed to follow session %s: %m", a->id);
                return EXIT_LOST;
        }
        return a->code;
}

int attach_session(Connection *c, const char *id, AttachFlags flags, AttachPipes *pipes) {
        Attachment a = {.connection = c, .id = id, .flags = flags, .pipes = pipes, .terminal = -EBADF, .terminal_input = -EBADF,
                        .typing = isatty(STDIN_FILENO)};
        int code;

        (void) snprintf(a.path, sizeof(a.path), "%s", bus_session_path(id).text);
        code = prepare(&a);
        if (code == EXIT_OK)
                code = run_loop(&a);
        else
                code = EXIT_NOT_SET_UP;
        attachment_done(&a);
        if (code == EXIT_DETACHED && a.leaving && !(flags & ATTACH_QUIET))
                log_info("detached: session %s goes on; errand session attach %s returns to it", id, id);
        return code;
}
