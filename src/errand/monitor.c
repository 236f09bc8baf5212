/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pwd.h>

#include "basic/text.h"
#include "errand/describe.h"
#include "errand/entries.h"
#include "errand/grants.h"
#include "errand/json-output.h"
#include "errand/known.h"
#include "errand/listener.h"
#include "errand/output.h"
#include "errand/sessions.h"
#include "errand/verbs.h"
#include "shared/bus-object.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"
#define PROPERTIES "org.freedesktop.DBus.Properties"

/* What errandd tells its subscribers, a line each. Everything comes by signals sent to this connection alone; what a restart of errandd
 * swallowed is found by comparing what was known with what it lists then. */
typedef struct Monitor {
        Listener listener;
        Known known;
} Monitor;

static bool is_wanted(const Monitor *m, const char *id) {
        for (size_t i = 0; i < m->listener.request->n_operands; i++)
                if (streq(m->listener.request->operands[i], id))
                        return true;
        return m->listener.request->n_operands == 0;
}

/* ---- a line ---- */

static void flush(Monitor *m) {
        if (output_error() != 0)
                listener_leave(&m->listener, output_flush());
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
        if (json_print(w) != EXIT_OK)
                listener_leave(&m->listener, EXIT_FAILED);
        json_writer_done(w);
        flush(m);
}

static void tell_daemon(Monitor *m, const char *event, TableColour colour, const char *text) {
        JsonWriter w = {};

        if (m->listener.request->json) {
                json_begin(&w, event, NULL);
                json_end(m, &w);
        } else
                say(m, "errandd", colour, "%s", text);
}

/* The first line, from which on nothing is missed. */
static void tell_listening(Monitor *m) {
        const char *place = m->listener.connection->place;
        unsigned live = known_count_live(&m->known);
        JsonWriter w = {};

        if (m->listener.request->json) {
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
        if (m->listener.request->json) {
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
        if (m->listener.request->json) {
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
        if (m->listener.request->json) {
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
        if (m->listener.request->json) {
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
        r = grants_each(l->monitor->listener.connection, s->id, note_grant, l);
        return r == EXIT_NOT_THERE ? EXIT_OK : r;
}

static void on_forgotten_session(const char *id, void *userdata) {
        tell_removed(userdata, id);
}

static int catch_up(bool again, void *userdata) {
        Monitor *m = userdata;
        Listing l = {.monitor = m, .announce = again};

        known_mark(&m->known);
        int r = sessions_each(m->listener.connection, true, note_session, &l);
        if (r == EXIT_OK)
                known_forget_marked(&m->known, on_forgotten_session, m);
        if (r == EXIT_OK && !again)
                tell_listening(m);
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
        if (m->listener.request->json) {
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
        if (m->listener.request->json) {
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
        if (streq(reason, "setup") && describe(m->listener.connection, id, &d) == EXIT_OK && *d.text)
                text = d.text;
        if (m->listener.request->json) {
                json_begin(&w, "exited", id);
                json_add_string(&w, "reason", reason);
                json_add_u64(&w, "status", (uint64_t) MAX(status, 0));
                if (text)
                        json_add_string(&w, "text", text);
                json_end(m, &w);
        } else
                say(m, id, status == 0 ? COLOUR_NONE : COLOUR_BAD, "%s%s%s", exit_text(reason, status, d.started > 0, how), text ? ": " : "", text ?: "");
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

static void on_signal(sd_bus_message *message, const char *interface, const char *member, void *userdata) {
        Monitor *m = userdata;

        if (streq(interface, BUS_SESSION_INTERFACE))
                on_session_signal(m, message, member);
        else if (streq(interface, OBJECT_MANAGER) && streq(member, "InterfacesAdded"))
                on_added(m, message);
        else if (streq(interface, OBJECT_MANAGER) && streq(member, "InterfacesRemoved"))
                on_removed(m, message);
        else if (streq(interface, PROPERTIES) && streq(member, "PropertiesChanged"))
                on_changed(m, message);
}

static void on_event(ListenerEvent event, void *userdata) {
        Monitor *m = userdata;

        switch (event) {
        case LISTENER_GONE:
                tell_daemon(m, "errandd-gone", COLOUR_BAD, "errandd went away; sessions that run go on, and it is waited for");
                break;
        case LISTENER_ENDED:
                tell_daemon(m, "errandd-gone", COLOUR_BAD, "errandd went away, and what ran with it; another one is waited for");
                break;
        case LISTENER_BACK:
                tell_daemon(m, "errandd-back", COLOUR_GOOD, "errandd is back");
                break;
        case LISTENER_MISSED:
                tell_daemon(m, "events-lost", COLOUR_BAD, "some events are lost: they came faster than they were read");
                break;
        default:
                break;
        }
}

int verb_monitor(const Request *q) {
        static const ListenerCalls calls = {.ready = catch_up, .signal = on_signal, .event = on_event};
        Monitor m = {.listener = {.request = q, .calls = &calls, .interrupts = -EBADF}};

        m.listener.userdata = &m;
        int r = listener_run(&m.listener, CONNECT_START_STATE | CONNECT_START_SAYS);
        known_done(&m.known);
        return r;
}
