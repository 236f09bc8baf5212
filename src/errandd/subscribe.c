/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/bus-objects.h"
#include "errandd/gate.h"
#include "shared/bus-message.h"
#include "shared/bus-vtable.h"

/* Signals go one by one to the subscribed links of those who may see what they tell: its owner, operators, and who was let through to it to read or
 * attach. libsystemd's emitters would broadcast. A
 * subscriber that does not read is dropped, and told so by the last signal that it gets. */

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"
#define PROPERTIES "org.freedesktop.DBus.Properties"

/* Whose a session was is still to be known when it has gone. */
struct OwnerEntry {
        char id[SESSION_ID_MAX + 1];
        uid_t uid;
};

/* What a signal tells; only what its appender needs is set. */
typedef struct Event {
        const char *path, *interface, *member;
        int (*append)(sd_bus_message *m, const struct Event *e);
        BusObjectKind kind; /* of the object that came, changed or went */
        BusPath object;
        Session *session;
        const Grant *grant;
        const char *word, *text; /* host; kind and text; reason */
        const Update *update;
        uint16_t port;
        uint32_t count;
        int status;
} Event;

static const sd_bus_vtable *event_vtable(const Event *e) {
        return e->kind == BUS_OBJECT_GRANT ? grant_vtable : session_vtable;
}

static const char *event_interface(const Event *e) {
        return e->kind == BUS_OBJECT_GRANT ? BUS_GRANT_INTERFACE : BUS_SESSION_INTERFACE;
}

static int append_added(sd_bus_message *m, const Event *e) {
        BusTarget t = {.session = e->session, .grant = e->grant};
        int r;

        r = sd_bus_message_append_basic(m, 'o', e->object.text);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sa{sv}}");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'e', "sa{sv}");
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', event_interface(e));
        if (r >= 0)
                r = vtable_append_properties(m, e->object.text, event_interface(e), event_vtable(e), false, &t);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_removed(sd_bus_message *m, const Event *e) {
        return sd_bus_message_append(m, "oas", e->object.text, 1, event_interface(e));
}

static int append_changed(sd_bus_message *m, const Event *e) {
        BusTarget t = {.session = e->session, .grant = e->grant};
        int r;

        r = sd_bus_message_append_basic(m, 's', event_interface(e));
        if (r >= 0)
                r = vtable_append_properties(m, e->path, event_interface(e), event_vtable(e), true, &t);
        return r < 0 ? r : sd_bus_message_append(m, "as", 0);
}

static int append_refused(sd_bus_message *m, const Event *e) {
        int r = bus_append_text(m, e->word);

        return r < 0 ? r : sd_bus_message_append(m, "qu", e->port, e->count);
}

static int append_notice(sd_bus_message *m, const Event *e) {
        int r = bus_append_text(m, e->word);

        if (r >= 0)
                r = bus_append_text(m, e->text);
        return r < 0 ? r : sd_bus_message_append(m, "a{sv}", 0);
}

static int append_field(sd_bus_message *m, const UpdateField *f) {
        return f->text ? bus_append_entry_text(m, f->name, f->text) : bus_append_entry_u64(m, f->name, f->number);
}

static int append_update(sd_bus_message *m, const Event *e) {
        int r;

        r = bus_append_text(m, update_kind_to_string(e->update->kind));
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        for (size_t i = 0; i < e->update->n_fields && r >= 0; i++)
                r = append_field(m, &e->update->fields[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_exited(sd_bus_message *m, const Event *e) {
        int r = bus_append_text(m, e->word);

        return r < 0 ? r : sd_bus_message_append(m, "i", (int32_t) e->status);
}

static int append_reason(sd_bus_message *m, const Event *e) {
        return bus_append_text(m, e->text);
}

static int send(BusLink *l, const Event *e) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_signal(l->connection->bus, &m, e->path, e->interface, e->member);
        if (r >= 0 && l->name)
                r = sd_bus_message_set_destination(m, l->name); /* on a message bus everybody would get it */
        if (r >= 0)
                r = e->append(m, e);
        if (r >= 0)
                r = sd_bus_send(l->connection->bus, m, NULL);
        if (r >= 0)
                bus_unread_add_signal(l, m);
        return r;
}

static void drop(BusLink *l) {
        static const Event dropped = {
                .path = BUS_ROOT, .interface = BUS_MANAGER_INTERFACE, .member = "Unsubscribed", .append = append_reason,
                .text = "signals were not read in time and some are lost; subscribe again, then ask for what is of interest"};

        l->subscribed = false;
        log_warning("A subscriber of uid %u does not read its signals, dropping its subscription", (unsigned) l->uid);
        (void) send(l, &dropped);
}

static bool may_hear(BusLink *l, uid_t owner, const char *id) {
        return l->subscribed && !l->dead && l->uid != UID_NONE && (l->uid == owner || bus_link_caller(l).operator || bus_link_follows(l, id));
}

/* What an agent writes may be more than a subscriber reads, and has up to 16 KiB a piece: there it is left out, and counted. */
static bool leave_out(BusLink *l, const Event *e, uint64_t queued) {
        if (!e->update || !update_kind_is_text(e->update->kind) || (queued < BUS_QUEUED_UPDATES_MAX && l->unread.signals < BUS_UNREAD_UPDATES_MAX))
                return false;
        l->missed++;
        return true;
}

/* Before the next one that it gets. */
static void tell_missed(BusLink *l, const Event *e) {
        Update missed = {.kind = UPDATE_MISSED, .n_fields = 1, .fields = {{.name = "count", .number = l->missed}}};
        Event own = *e;

        own.update = &missed;
        l->missed = 0;
        (void) send(l, &own);
}

/* id and owner: of the session that it is about. */
static void tell(Bus *b, const char *id, uid_t owner, const Event *e) {
        for (BusLink *l = b->links; l; l = l->next) {
                uint64_t queued;
                int r;

                if (!may_hear(l, owner, id))
                        continue;
                if (sd_bus_get_n_queued_write(l->connection->bus, &queued) < 0 || queued >= BUS_QUEUED_SIGNALS_MAX ||
                    l->unread.signals >= BUS_UNREAD_SIGNALS_MAX) {
                        drop(l);
                        continue;
                }
                if (leave_out(l, e, queued))
                        continue;
                if (e->update && l->missed > 0)
                        tell_missed(l, e);
                r = send(l, e);
                if (r < 0 && r != -ENOTCONN && r != -ECONNRESET && r != -EPIPE)
                        log_warning_errno(r, "Failed to send signal %s, ignoring: %m", e->member);
        }
}

static void tell_about(Bus *b, const Session *s, const Event *e) {
        tell(b, session_record(s)->id, session_record(s)->owner, e);
}

/* A signal of the session's own object. */
static void tell_session(Bus *b, Session *s, Event *e) {
        BusPath path = bus_session_path(session_record(s)->id);

        e->kind = BUS_OBJECT_SESSION;
        e->path = path.text;
        e->session = s;
        tell_about(b, s, e);
}

static OwnerEntry *owner_find(Bus *b, const char *id) {
        for (size_t i = 0; i < b->n_owners; i++)
                if (streq(b->owners[i].id, id))
                        return b->owners + i;
        return NULL;
}

static int owner_add(Bus *b, Session *s) {
        OwnerEntry *grown = reallocarray(b->owners, b->n_owners + 1, sizeof(OwnerEntry));

        if (!grown)
                return -ENOMEM;
        b->owners = grown;
        grown += b->n_owners++;
        grown->uid = session_record(s)->owner;
        snprintf(grown->id, sizeof(grown->id), "%s", session_record(s)->id);
        return 0;
}

static void on_session_added(Session *s, void *userdata) {
        Event e = {.path = BUS_ROOT, .interface = OBJECT_MANAGER, .member = "InterfacesAdded", .append = append_added,
                   .kind = BUS_OBJECT_SESSION, .session = s, .object = bus_session_path(session_record(s)->id)};
        Bus *b = userdata;

        if (owner_add(b, s) < 0)
                log_oom();
        tell_about(b, s, &e);
}

static void on_session_removed(const char *id, void *userdata) {
        Event e = {.path = BUS_ROOT, .interface = OBJECT_MANAGER, .member = "InterfacesRemoved", .append = append_removed,
                   .kind = BUS_OBJECT_SESSION, .object = bus_session_path(id)};
        Bus *b = userdata;
        OwnerEntry *owner = owner_find(b, id);

        tell(b, id, owner ? owner->uid : UID_NONE, &e); /* not known: to operators alone */
        if (owner)
                *owner = b->owners[--b->n_owners];
        gate_forget_session(b, id);
        for (BusLink *l = b->links; l; l = l->next)
                bus_link_unfollow(l, id);
        for (BusConnection *c = b->connections; c; c = c->next) {
                c->admitted = NULL; /* it may be the one that went */
                c->target.session = NULL;
        }
}

static void on_session_changed(Session *s, void *userdata) {
        tell_session(userdata, s, &(Event){.interface = PROPERTIES, .member = "PropertiesChanged", .append = append_changed});
}

static void on_session_refused(Session *s, const char *host, uint16_t port, uint64_t count, void *userdata) {
        tell_session(userdata, s, &(Event){.interface = BUS_SESSION_INTERFACE, .member = "EgressRefused", .append = append_refused,
                                           .word = host, .port = port, .count = (uint32_t) MIN(count, (uint64_t) UINT32_MAX)});
}

static void on_session_notice(Session *s, const char *kind, const char *text, void *userdata) {
        tell_session(userdata, s, &(Event){.interface = BUS_SESSION_INTERFACE, .member = "Notice", .append = append_notice, .word = kind,
                                           .text = text});
}

static void on_session_update(Session *s, const Update *u, void *userdata) {
        tell_session(userdata, s, &(Event){.interface = BUS_SESSION_INTERFACE, .member = "Update", .append = append_update, .update = u});
}

static void on_session_exited(Session *s, const char *reason, int status, void *userdata) {
        tell_session(userdata, s, &(Event){.interface = BUS_SESSION_INTERFACE, .member = "Exited", .append = append_exited,
                                           .word = reason, .status = status});
}

static void on_grant_added(Session *s, const Grant *g, void *userdata) {
        Event e = {.path = BUS_ROOT, .interface = OBJECT_MANAGER, .member = "InterfacesAdded", .append = append_added,
                   .kind = BUS_OBJECT_GRANT, .session = s, .grant = g, .object = bus_grant_path(session_record(s)->id, g->number)};

        tell_about(userdata, s, &e);
}

static void on_grant_changed(Session *s, const Grant *g, void *userdata) {
        BusPath path = bus_grant_path(session_record(s)->id, g->number);
        Event e = {.path = path.text, .interface = PROPERTIES, .member = "PropertiesChanged", .append = append_changed,
                   .kind = BUS_OBJECT_GRANT, .session = s, .grant = g};

        tell_about(userdata, s, &e);
}

static void on_grant_removed(Session *s, uint32_t number, void *userdata) {
        Event e = {.path = BUS_ROOT, .interface = OBJECT_MANAGER, .member = "InterfacesRemoved", .append = append_removed,
                   .kind = BUS_OBJECT_GRANT, .object = bus_grant_path(session_record(s)->id, number)};

        tell_about(userdata, s, &e);
}

int subscribe_begin(Bus *b) {
        int r;

        for (Session *s = NULL; (s = manager_next(b->manager, s));) {
                r = owner_add(b, s);
                if (r < 0)
                        return r;
        }
        b->observer = (Observer){
                .session_added = on_session_added,
                .session_removed = on_session_removed,
                .session_changed = on_session_changed,
                .session_refused = on_session_refused,
                .session_notice = on_session_notice,
                .session_update = on_session_update,
                .session_exited = on_session_exited,
                .grant_added = on_grant_added,
                .grant_changed = on_grant_changed,
                .grant_removed = on_grant_removed,
                .userdata = b,
        };
        manager_observe(b->manager, &b->observer);
        return 0;
}

void subscribe_end(Bus *b) {
        static const Observer none = {};

        if (b->observer.userdata) /* nobody before subscribe_begin() got there */
                manager_observe(b->manager, &none);
        b->owners = mfree(b->owners);
        b->n_owners = 0;
}
