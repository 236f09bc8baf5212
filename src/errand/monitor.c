/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"
#include "errand/describe.h"
#include "errand/entries.h"
#include "errand/grants.h"
#include "errand/json-output.h"
#include "errand/known.h"
#include "errand/message-bus.h"
#include "errand/output.h"
#include "errand/sessions.h"
#include "errand/verbs.h"
#include "shared/bus-object.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define RETRY_MSEC 500 /* an errandd of one's own comes back without telling anybody */

/* What errandd tells its subscribers, a line each. Everything comes by signals sent to this connection alone; what a restart of errandd
 * swallowed is found by comparing what was known with what it lists then. */
typedef struct Monitor {
        const Request *request;
        Connection *connection;
        Known known;
        bool disconnected, leaving;
        int code;
} Monitor;

static bool is_wanted(const Monitor *m, const char *id) {
        for (size_t i = 0; i < m->request->n_operands; i++)
                if (streq(m->request->operands[i], id))
                        return true;
        return m->request->n_operands == 0;
}

static void leave(Monitor *m, int code) {
        m->leaving = true;
        m->code = code;
}

/* ---- a line ---- */

static void flush(Monitor *m) {
        if (fflush(stdout) != 0)
                leave(m, errno == EPIPE ? EXIT_OK : EXIT_FAILED); /* a reader that has seen enough */
}

_printf_(4, 5) static void say(Monitor *m, const char *who, TableColour colour, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *shown = text_for_terminal(text ?: "out of memory");
        char now[TIME_TEXT_MAX];
        const char *time = time_text(now_realtime(), now);

        /* Who looks on knows the day. */
        printf("%s  %-8s  %s%s%s\n", output_width() > 0 && strchr(time, ' ') ? strchr(time, ' ') + 1 : time, who, colour_begin(colour, output_colours()), shown ?: "",
               colour_end(colour, output_colours()));
        flush(m);
}

static void json_begin(JsonWriter *w, const char *event, const char *session) {
        json_open_object(w, NULL);
        json_add_u64(w, "timeUSec", now_realtime());
        json_add_string(w, "event", event);
        if (session)
                json_add_string(w, "session", session);
}

static void json_end(Monitor *m, JsonWriter *w) {
        json_close_object(w);
        if (json_print(w, stdout) != EXIT_OK)
                leave(m, EXIT_FAILED);
        json_writer_done(w);
        flush(m);
}

static void tell_daemon(Monitor *m, const char *event, TableColour colour, const char *text) {
        JsonWriter w = {};

        if (m->request->json) {
                json_begin(&w, event, NULL);
                json_end(m, &w);
        } else
                say(m, "errandd", colour, "%s", text);
}

/* The first line, from which on nothing is missed. */
static void tell_listening(Monitor *m) {
        const char *place = m->connection->place;
        unsigned live = known_count_live(&m->known);
        JsonWriter w = {};

        if (m->request->json) {
                json_begin(&w, "listening", NULL);
                json_add_string(&w, "place", place);
                json_add_u64(&w, "live", live);
                json_end(m, &w);
        } else
                say(m, "errandd", COLOUR_DIM, "listening to errandd on %s; live sessions: %u", place, live);
}

static TableColour state_colour(const char *state) {
        return streq(state, "running") ? COLOUR_GOOD : streq(state, "failed") ? COLOUR_BAD : COLOUR_NONE;
}

static void tell_state(Monitor *m, const char *id, const char *state) {
        JsonWriter w = {};

        if (!is_wanted(m, id))
                return;
        if (m->request->json) {
                json_begin(&w, "state", id);
                json_add_string(&w, "state", state);
                json_end(m, &w);
        } else
                say(m, id, state_colour(state), "%s", state);
}

static void tell_new(Monitor *m, const char *id, const char *state, uint32_t owner) {
        const struct passwd *account = owner == UINT32_MAX ? NULL : getpwuid(owner);
        JsonWriter w = {};

        if (!is_wanted(m, id))
                return;
        if (m->request->json) {
                json_begin(&w, "new", id);
                json_add_string(&w, "state", state);
                if (owner != UINT32_MAX)
                        json_add_u64(&w, "ownerUid", owner);
                json_end(m, &w);
        } else if (account)
                say(m, id, COLOUR_NONE, "new session of %s, %s", account->pw_name, state);
        else
                say(m, id, COLOUR_NONE, "new session, %s", state);
}

static void tell_removed(Monitor *m, const char *id) {
        JsonWriter w = {};

        if (!is_wanted(m, id))
                return;
        if (m->request->json) {
                json_begin(&w, "removed", id);
                json_end(m, &w);
        } else
                say(m, id, COLOUR_DIM, "its record was removed");
}

/* event: granted, with duration and by; grant-used, grant-over. */
static void tell_grant(Monitor *m, const char *event, const char *id, unsigned number, const char *host, const char *duration, uint32_t by) {
        const struct passwd *account = duration ? getpwuid(by) : NULL;
        JsonWriter w = {};

        if (!is_wanted(m, id))
                return;
        if (m->request->json) {
                json_begin(&w, event, id);
                json_add_u64(&w, "number", number);
                json_add_string(&w, "host", host);
                if (duration) {
                        json_add_string(&w, "duration", duration);
                        json_add_u64(&w, "grantedByUid", by);
                }
                json_end(m, &w);
        } else if (duration)
                say(m, id, COLOUR_NONE, "granted by %s: %s, %s (grant %u)", account ? account->pw_name : "another account", host, duration, number);
        else
                say(m, id, COLOUR_NONE, "grant %u%s%s %s", number, host ? " to " : "", host ?: "", streq(event, "grant-used") ? "was used" : "is over");
}

/* ---- what is there ---- */

typedef struct Listing {
        Monitor *monitor;
        bool announce;
} Listing;

static int note_grant(const char *id, const GrantLine *g, void *userdata) {
        Listing *l = userdata;

        if (known_add_grant(&l->monitor->known, id, g->number, g->host) > 0 && l->announce)
                tell_grant(l->monitor, "granted", id, g->number, g->host, g->duration, g->by);
        return EXIT_OK;
}

static int note_session(const SessionLine *s, void *userdata) {
        Listing *l = userdata;
        int r = known_set_state(&l->monitor->known, s->id, s->state);

        if (l->announce && r == KNOWN_NEW)
                tell_new(l->monitor, s->id, s->state, UINT32_MAX);
        else if (l->announce && r == KNOWN_CHANGED)
                tell_state(l->monitor, s->id, s->state);
        if (session_has_ended(s->state))
                return EXIT_OK;
        /* It may have gone since. */
        r = grants_each(l->monitor->connection, s->id, note_grant, l);
        return r == EXIT_NOT_THERE ? EXIT_OK : r;
}

static void on_forgotten_session(const char *id, void *userdata) {
        tell_removed(userdata, id);
}

/* Asks for signals first, so that nothing falls between them and the list. An ExitCode. */
static int catch_up(Monitor *m, bool announce) {
        Listing l = {.monitor = m, .announce = announce};
        int r;

        r = manager_call(m->connection, "Subscribe", "Failed to listen to errandd", NULL, NULL);
        known_mark(&m->known);
        if (r == EXIT_OK)
                r = sessions_each(m->connection, true, note_session, &l);
        if (r == EXIT_OK)
                known_forget_marked(&m->known, on_forgotten_session, m);
        return r;
}

/* ---- signals ---- */

static void on_added(Monitor *m, sd_bus_message *message) {
        const char *path, *interface, *state = "", *host = "", *duration = "";
        uint32_t owner = UINT32_MAX, by = UINT32_MAX;
        const Entry entries[] = {{"State", 's', &state}, {"OwnerUid", 'u', &owner}, {"Host", 's', &host}, {"Duration", 's', &duration},
                                 {"GrantedByUid", 'u', &by}};
        BusObject o;

        if (sd_bus_message_read_basic(message, 'o', &path) < 0 || bus_object_parse(path, &o) < 0 ||
            sd_bus_message_enter_container(message, 'a', "{sa{sv}}") < 0 || sd_bus_message_enter_container(message, 'e', "sa{sv}") < 0 ||
            sd_bus_message_read_basic(message, 's', &interface) < 0 || entries_read(message, entries, ELEMENTSOF(entries)) <= 0)
                return;
        if (o.kind == BUS_OBJECT_SESSION && known_set_state(&m->known, o.session, state) == KNOWN_NEW)
                tell_new(m, o.session, state, owner);
        else if (o.kind == BUS_OBJECT_GRANT && known_add_grant(&m->known, o.session, (uint32_t) o.number, host) > 0)
                tell_grant(m, "granted", o.session, (unsigned) o.number, host, duration, by);
}

static void on_removed(Monitor *m, sd_bus_message *message) {
        const char *path;
        BusObject o;

        if (sd_bus_message_read_basic(message, 'o', &path) < 0 || bus_object_parse(path, &o) < 0)
                return;
        if (o.kind == BUS_OBJECT_SESSION && known_remove(&m->known, o.session))
                tell_removed(m, o.session);
        else if (o.kind == BUS_OBJECT_GRANT) {
                tell_grant(m, "grant-over", o.session, (unsigned) o.number, known_host(&m->known, o.session, (uint32_t) o.number), NULL, 0);
                known_remove_grant(&m->known, o.session, (uint32_t) o.number);
        }
}

static void on_changed(Monitor *m, sd_bus_message *message) {
        const char *interface, *state = NULL;
        bool used = false;
        const Entry entries[] = {{"State", 's', &state}, {"Used", 'b', &used}};
        BusObject o;

        if (bus_object_parse(sd_bus_message_get_path(message), &o) < 0 || sd_bus_message_read_basic(message, 's', &interface) < 0 ||
            entries_read(message, entries, ELEMENTSOF(entries)) <= 0)
                return;
        if (o.kind == BUS_OBJECT_SESSION && state && known_set_state(&m->known, o.session, state) != KNOWN_SAME)
                tell_state(m, o.session, state);
        else if (o.kind == BUS_OBJECT_GRANT && used)
                tell_grant(m, "grant-used", o.session, (unsigned) o.number, known_host(&m->known, o.session, (uint32_t) o.number), NULL, 0);
}

static void on_refused(Monitor *m, const char *id, sd_bus_message *message) {
        JsonWriter w = {};
        const char *host;
        uint16_t port;
        uint32_t count;

        if (sd_bus_message_read(message, "squ", &host, &port, &count) < 0)
                return;
        if (m->request->json) {
                json_begin(&w, "refused", id);
                json_add_string(&w, "host", host);
                json_add_u64(&w, "port", port);
                json_add_u64(&w, "count", count);
                json_end(m, &w);
        } else if (count > 1)
                say(m, id, COLOUR_BAD, "refused: %s, port %u, %u times", host, port, count);
        else
                say(m, id, COLOUR_BAD, "refused: %s, port %u", host, port);
}

static void on_notice(Monitor *m, const char *id, sd_bus_message *message) {
        const char *kind, *text;
        JsonWriter w = {};

        /* A refused host is told by EgressRefused. */
        if (sd_bus_message_read(message, "ss", &kind, &text) < 0 || streq(kind, "egress"))
                return;
        if (m->request->json) {
                json_begin(&w, "notice", id);
                json_add_string(&w, "kind", kind);
                json_add_string(&w, "text", text);
                json_end(m, &w);
        } else
                say(m, id, COLOUR_NONE, "%s: %s", kind, text);
}

static void on_exited(Monitor *m, const char *id, sd_bus_message *message) {
        _cleanup_(description_done) Description d = {};
        char how[EXIT_TEXT_MAX];
        const char *reason, *text = NULL;
        JsonWriter w = {};
        int32_t status;

        if (sd_bus_message_read(message, "si", &reason, &status) < 0)
                return;
        if (streq(reason, "setup") && describe(m->connection, id, &d) == EXIT_OK && *d.text)
                text = d.text;
        if (m->request->json) {
                json_begin(&w, "exited", id);
                json_add_string(&w, "reason", reason);
                json_add_u64(&w, "status", (uint64_t) MAX(status, 0));
                if (text)
                        json_add_string(&w, "text", text);
                json_end(m, &w);
        } else
                say(m, id, status == 0 ? COLOUR_NONE : COLOUR_BAD, "%s%s%s", exit_text(reason, status, how), text ? ": " : "", text ?: "");
}

static void on_session_signal(Monitor *m, sd_bus_message *message, const char *member) {
        BusObject o;

        if (bus_object_parse(sd_bus_message_get_path(message), &o) < 0 || o.kind != BUS_OBJECT_SESSION || !is_wanted(m, o.session))
                return;
        if (streq(member, "EgressRefused"))
                on_refused(m, o.session, message);
        else if (streq(member, "Notice"))
                on_notice(m, o.session, message);
        else if (streq(member, "Exited"))
                on_exited(m, o.session, message);
}

static void on_unsubscribed(Monitor *m) {
        tell_daemon(m, "events-lost", COLOUR_BAD, "some events are lost: they came faster than they were read");
        int r = catch_up(m, true);
        if (r != EXIT_OK && r != EXIT_NO_DAEMON)
                leave(m, r);
}

/* On a message bus errandd may be restarted, and this connection stays. */
static int on_owner(sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error) {
        const char *name, *owner;
        Monitor *m = userdata;

        if (!streq_ptr(sd_bus_message_get_sender(message), BUS_DRIVER) || sd_bus_message_read(message, "sss", &name, NULL, &owner) < 0 ||
            !streq(name, BUS_NAME))
                return 0;
        if (!*owner) {
                tell_daemon(m, "errandd-gone", COLOUR_BAD, "errandd went away; sessions that run go on, and it is waited for");
                return 0;
        }
        if (connection_set_owner(m->connection, owner) != EXIT_OK) {
                leave(m, EXIT_FAILED);
                return 0;
        }
        tell_daemon(m, "errandd-back", COLOUR_GOOD, "errandd is back");
        int r = catch_up(m, true);
        if (r != EXIT_OK && r != EXIT_NO_DAEMON) /* gone again: told by the next of these signals */
                leave(m, r);
        return 0;
}

static int on_message(sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error) {
        const char *interface, *member;
        Monitor *m = userdata;
        uint8_t type;

        if (sd_bus_message_get_type(message, &type) < 0 || type != SD_BUS_MESSAGE_SIGNAL)
                return 0;
        interface = sd_bus_message_get_interface(message);
        member = sd_bus_message_get_member(message);
        if (!interface || !member)
                return 0;
        if (streq(interface, BUS_DRIVER ".Local")) {
                m->disconnected = true;
                return 0;
        }
        if (!connection_is_errandd(m->connection, message))
                return 0;
        if (streq(interface, BUS_SESSION_INTERFACE))
                on_session_signal(m, message, member);
        else if (streq(interface, OBJECT_MANAGER) && streq(member, "InterfacesAdded"))
                on_added(m, message);
        else if (streq(interface, OBJECT_MANAGER) && streq(member, "InterfacesRemoved"))
                on_removed(m, message);
        else if (streq(interface, PROPERTIES) && streq(member, "PropertiesChanged"))
                on_changed(m, message);
        else if (streq(interface, BUS_MANAGER_INTERFACE) && streq(member, "Unsubscribed"))
                on_unsubscribed(m);
        return 0;
}

/* ---- all of it ---- */

static int listen_to(Monitor *m) {
        sd_bus *bus = m->connection->bus;
        int r;

        m->connection->listens = true;
        r = sd_bus_add_filter(bus, NULL, on_message, m);
        if (r >= 0 && m->connection->owner)
                r = sd_bus_add_match(bus, NULL, "type='signal',sender='" BUS_DRIVER "',member='NameOwnerChanged',arg0='" BUS_NAME "'", on_owner, m);
        if (r < 0) {
                log_error_errno(r, "Failed to listen to errandd: %m");
                return EXIT_FAILED;
        }
        return EXIT_OK;
}

/* Until the connection breaks, or nobody reads what is written. */
static int follow(Monitor *m) {
        sd_bus *bus = m->connection->bus;

        while (!m->leaving && !m->disconnected) {
                struct pollfd ends[] = {{.fd = sd_bus_get_fd(bus)}, {.fd = STDOUT_FILENO /* POLLERR */}};
                int r = sd_bus_process(bus, NULL);

                if (r > 0)
                        continue;
                if (r >= 0)
                        r = sd_bus_get_events(bus);
                if (r < 0) {
                        m->disconnected = true;
                        break;
                }
                ends[0].events = (short) r;
                if (poll(ends, ELEMENTSOF(ends), -1) > 0 && ends[1].revents)
                        leave(m, EXIT_OK);
        }
        return m->code;
}

/* Only an errandd of one's own is behind the connection itself. */
static int await_another(Monitor *m) {
        struct pollfd out = {.fd = STDOUT_FILENO};

        tell_daemon(m, "errandd-gone", COLOUR_BAD, "errandd went away, and what ran with it; another one is waited for");
        while (!m->leaving) {
                Connection *c = NULL;

                if (connection_again(m->request, &c) == EXIT_OK) {
                        connection_free(m->connection);
                        m->connection = c;
                        m->disconnected = false;
                        tell_daemon(m, "errandd-back", COLOUR_GOOD, "errandd is back");
                        return EXIT_OK;
                }
                if (poll(&out, 1, RETRY_MSEC) > 0)
                        leave(m, EXIT_OK);
        }
        return m->code;
}

int verb_monitor(const Request *q) {
        Monitor m = {.request = q};
        bool again = false;
        int r;

        r = connection_open(q, CONNECT_START_STATE | CONNECT_START_SAYS, &m.connection);
        while (r == EXIT_OK && !m.leaving) {
                r = listen_to(&m);
                if (r == EXIT_OK)
                        r = catch_up(&m, again);
                if (r == EXIT_OK && !again)
                        tell_listening(&m);
                if (r == EXIT_OK)
                        r = follow(&m);
                if (r == EXIT_NO_DAEMON || m.disconnected) {
                        if (m.connection->mode != CONNECT_EMBEDDED) {
                                log_error("%s is gone, and errandd with it", m.connection->place);
                                r = EXIT_NO_DAEMON;
                                break;
                        }
                        r = await_another(&m);
                        again = true;
                }
        }
        known_done(&m.known);
        connection_free(m.connection);
        return r;
}
