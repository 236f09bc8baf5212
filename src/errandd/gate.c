/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <systemd/sd-id128.h>

#include "basic/text.h"
#include "errandd/gate.h"
#include "errandd/gate-details.h"
#include "errandd/message-size.h"
#include "errandd/say.h"

/* Every message of every connection passes here before libsystemd looks for an object. In this order, and nothing has an effect before the
 * end of it: what is called (the table; what is not in it is denied), whom it concerns (a session that is the caller's to know of),
 * whether the caller may. Where that has to be asked, the message is held and comes through again, from the beginning, with the answer. */

#define PROPERTIES "org.freedesktop.DBus.Properties"
#define NAME_SHOWN 255 /* bytes of a name, as long as names of a message's head may be */

struct Held {
        BusLink *link;
        sd_bus_message *message;
        AuthorizeRequest request; /* what was asked; its texts are not kept */
        char session[SESSION_ID_MAX + 1];
        size_t size; /* of the message */
        uint64_t need; /* reserved for its answer */
        void *ticket;
        bool answered, allowed;
        Held *next;
};

typedef struct Passage {
        const Action *action;
        BusObject object;
        Session *session; /* whom it concerns; NULL: none */
        bool own;
} Passage;

static Held *held_free(Held *h) {
        sd_bus_message_unref(h->message);
        free(h);
        return NULL;
}

static void held_remove(Held *h) {
        bus_link_let_go(h->link, h->size);
        bus_unread_give_up(h->link, h->need);
        for (Held **p = &h->link->held; *p; p = &(*p)->next)
                if (*p == h) {
                        *p = h->next;
                        h->link->n_held--;
                        return;
                }
}

void gate_forget(BusLink *l) {
        Authorizer *a = l->connection->face->authorizer;

        while (l->held) {
                Held *h = l->held;

                held_remove(h);
                if (!h->answered)
                        a->cancel(a, h->ticket);
                held_free(h);
        }
        if (a->forget && l->name)
                a->forget(a, l->name, NULL);
}

void gate_forget_session(Bus *b, const char *id) {
        if (b->authorizer->forget)
                b->authorizer->forget(b->authorizer, NULL, id);
}

static void held_answered(bool allowed, void *userdata) {
        Held *h = userdata;

        h->answered = true;
        h->allowed = allowed;
        h->ticket = NULL;
        if (sd_bus_enqueue_for_read(h->link->connection->bus, h->message) < 0) {
                held_remove(h); /* the connection has gone: nothing is left to answer */
                held_free(h);
        }
}

/* Both may be texts of the message's contents, which have any length; an error that repeated that would cost a caller nothing and errandd its place. */
static int denied(sd_bus_error *error, const char *interface, const char *member) {
        return bus_error_setf(error, BUS_ERROR_NOT_PERMITTED, "%.*s.%.*s is not part of this interface", NAME_SHOWN, interface, NAME_SHOWN, member);
}

/* All properties of an interface need the one permission that any of them needs beside none. */
static const Action *strictest_read(const char *interface) {
        const Action *found = NULL, *table;
        size_t n;

        table = action_table(&n);
        for (size_t i = 0; i < n; i++)
                if (table[i].kind == MEMBER_READ && streq(table[i].interface, interface) &&
                    (!found || found->permission == PERMISSION_PUBLIC))
                        found = table + i;
        return found;
}

static int find_property_action(sd_bus_message *m, const char *member, const Action **ret, sd_bus_error *error) {
        const char *interface, *property = "*";
        bool all = streq(member, "GetAll"), set = streq(member, "Set");
        int r;

        if (!all && !set && !streq(member, "Get"))
                return denied(error, PROPERTIES, member);
        if (!sd_bus_message_has_signature(m, all ? "s" : set ? "ssv" : "ss"))
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s takes arguments of type \"%s\"", member,
                                      all ? "s" : set ? "ssv" : "ss");
        r = sd_bus_message_read(m, all ? "s" : "ss", &interface, &property);
        if (r >= 0)
                r = sd_bus_message_rewind(m, true);
        if (r < 0)
                return r;
        *ret = all ? strictest_read(interface) : action_find(interface, property, set ? MEMBER_WRITE : MEMBER_READ);
        return *ret ? 0 : denied(error, interface, property);
}

/* libsystemd answers with it by itself and, where there is none, as in a minimal container, drops the connection, and all clients with it. */
static int check_machine_id(sd_bus_error *error) {
        sd_id128_t id;

        return sd_id128_get_machine(&id) < 0 ? bus_error_set(error, BUS_ERROR_NOT_FOUND, "this machine has no id; systemd-machine-id-setup makes one") : 0;
}

/* The permission is that of what is asked for. What is no command, or is written wrongly, is nobody's to use, whatever the session. */
static int find_said(BusConnection *c, sd_bus_message *m, const Action **ret, sd_bus_error *error) {
        _cleanup_free_ char *problem = NULL;
        const char *text;
        int r;

        if (!sd_bus_message_has_signature(m, "s"))
                return bus_error_set(error, BUS_ERROR_INVALID_ARGUMENT, "Say takes one string");
        r = sd_bus_message_read_basic(m, 's', &text);
        if (r >= 0)
                r = sd_bus_message_rewind(m, true);
        if (r < 0)
                return r;
        r = say_parse(text, &c->said, &problem);
        if (r < 0)
                return r == -EBADMSG ? bus_error_set(error, BUS_ERROR_INVALID_ARGUMENT, problem) : r;
        if (c->said.verb != SAY_PROMPT)
                *ret = action_find(BUS_SESSION_INTERFACE, say_verb_word(c->said.verb), MEMBER_SAID);
        return *ret ? 0 : denied(error, BUS_SESSION_INTERFACE, "Say");
}

static int find_action(BusConnection *c, sd_bus_message *m, const Action **ret, sd_bus_error *error) {
        const char *interface = sd_bus_message_get_interface(m), *member = sd_bus_message_get_member(m);

        if (strlen(sd_bus_message_get_path(m)) > BUS_PATH_MAX) /* libsystemd's own answer would repeat it */
                return bus_not_found(error, "object");
        if (!interface)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "the call of %s names no interface", member);
        if (streq(interface, PROPERTIES))
                return find_property_action(m, member, ret, error);
        *ret = action_find(interface, member, MEMBER_METHOD);
        if (!*ret)
                return denied(error, interface, member);
        if (streq(interface, BUS_SESSION_INTERFACE) && streq(member, "Say"))
                return find_said(c, m, ret, error);
        return streq(member, "GetMachineId") ? check_machine_id(error) : 0;
}

static int find_argument_session(BusLink *l, sd_bus_message *m, Session **ret, sd_bus_error *error) {
        const char *id;
        int r;

        if (!sd_bus_message_has_signature(m, "s"))
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s takes one string, a session's id", sd_bus_message_get_member(m));
        r = sd_bus_message_read_basic(m, 's', &id);
        if (r >= 0)
                r = sd_bus_message_rewind(m, true);
        if (r < 0)
                return r;
        *ret = strlen(id) <= SESSION_ID_MAX ? manager_find(l->connection->face->manager, id) : NULL;
        return *ret ? 0 : bus_not_found(error, "session");
}

/* The session of the object, whoever owns it. A grant or a receipt that is not there is told only after the session is known to be seen. */
static int find_object_session(BusLink *l, sd_bus_message *m, Passage *p, sd_bus_error *error) {
        static const char *const nouns[_BUS_OBJECT_KIND_MAX] = {
                [BUS_OBJECT_MANAGER] = "object", [BUS_OBJECT_SESSION] = "session", [BUS_OBJECT_GRANT] = "grant", [BUS_OBJECT_RECEIPT] = "receipt"};
        BusObjectKind kind = bus_object_kind_of(p->action->interface);
        const StoredReceipt *receipt;

        if (kind < 0)
                return 0; /* an interface that every object has: the objects are filtered */
        if (bus_object_parse(sd_bus_message_get_path(m), &p->object) < 0 || p->object.kind != kind)
                return bus_not_found(error, nouns[kind]);
        if (kind == BUS_OBJECT_MANAGER) {
                if (p->action->scope != SCOPE_OBJECT || p->action->permission == PERMISSION_CREATE)
                        return 0;
                return find_argument_session(l, m, &p->session, error);
        }
        if (kind == BUS_OBJECT_RECEIPT)
                p->session = bus_link_receipt(l, p->object.number, &receipt) ? manager_find(l->connection->face->manager, receipt->session) : NULL;
        else
                p->session = manager_find(l->connection->face->manager, p->object.session);
        if (p->session && kind == BUS_OBJECT_GRANT && !grant_list_find(session_grants(p->session), (uint32_t) p->object.number))
                p->session = NULL;
        return p->session ? 0 : bus_not_found(error, nouns[kind]);
}

static bool held_matches(const Held *h, const AuthorizeRequest *q) {
        return h->request.permission == q->permission && h->request.own == q->own && h->request.uid == q->uid &&
               streq(h->session, q->session ?: "");
}

/* The answer for a message that comes through again, now the caller's. */
static Held *held_take(BusLink *l, sd_bus_message *m) {
        for (Held *h = l->held; h; h = h->next)
                if (h->answered && h->message == m) {
                        held_remove(h);
                        return h;
                }
        return NULL;
}

/* Bytes that those in its answer count for. */
static uint64_t descriptors_of(const Action *a) {
        return a ? (uint64_t) a->descriptors * BUS_UNREAD_DESCRIPTOR_BYTES : 0;
}

/* While a call is delayed, a large answer's share as well. */
static uint64_t need_of(const Action *a) {
        return !a || !a->large ? descriptors_of(a) : BUS_TRANSCRIPT_MAX;
}

/* The call may wait: for room, or for an end of the account's other questions. */
static int delay(BusLink *l, sd_bus_message *m, DelayReason reason, const Action *a, int r, sd_bus_error *error) {
        if (!bus_delay(l, m, reason, need_of(a)))
                return r;
        sd_bus_error_free(error);
        return -EINPROGRESS;
}

static int may_ask(const BusLink *l, sd_bus_error *error) {
        Authorizer *a = l->connection->face->authorizer;
        int r;

        r = bus_link_may_keep(l, ACCOUNT_HELD, error);
        if (r >= 0 && l->name && a->is_busy && a->is_busy(a, l->uid))
                r = bus_error_set(error, BUS_ERROR_LIMIT, "polkit has not answered yet what your account's last calls led to; try again in a moment");
        return r;
}

static int may_hold(BusLink *l, sd_bus_message *m, const Passage *p, size_t *ret_size, sd_bus_error *error) {
        int r;

        if (l->n_held >= BUS_HELD_MAX)
                return bus_error_setf(error, BUS_ERROR_LIMIT, "%u calls of this connection are waiting for an authorization", BUS_HELD_MAX);
        r = may_ask(l, error);
        if (r < 0)
                return delay(l, m, DELAY_AUTHORIZATION, p->action, r, error);
        r = message_size(m, BUS_HELD_SIZE_MAX, ret_size);
        if (r == -E2BIG)
                return bus_error_setf(error, BUS_ERROR_LIMIT, "the call has more than %u bytes", BUS_HELD_SIZE_MAX);
        if (r >= 0 && !bus_link_may_hold(l, *ret_size))
                return bus_error_set(error, BUS_ERROR_LIMIT, "too many calls are waiting for an authorization");
        return r;
}

/* 1: allowed, 0: denied, -EINPROGRESS: the message is held, or delayed. */
static int authorize(BusLink *l, sd_bus_message *m, const Held *answer, const Passage *p, const AuthorizeRequest *q, sd_bus_error *error) {
        Bus *b = l->connection->face;
        size_t size = 0;
        Held *h;
        int r;

        /* Matches: the session may have been collected meanwhile and made again by somebody else. */
        if (answer)
                return answer->allowed && held_matches(answer, q);
        if (b->authorizer->cancel) {
                r = may_hold(l, m, p, &size, error);
                if (r < 0)
                        return r;
        }
        h = calloc(1, sizeof(Held));
        if (!h)
                return -ENOMEM;
        *h = (Held){.link = l, .request = *q, .size = size, .need = descriptors_of(p->action)};
        snprintf(h->session, sizeof(h->session), "%s", q->session ?: "");
        h->request.session = h->request.sender = h->request.member = h->request.host = h->request.duration = h->request.project = NULL;

        r = b->authorizer->check(b->authorizer, q, held_answered, h, &h->ticket);
        if (r != -EINPROGRESS) {
                held_free(h);
                return r > 0;
        }
        h->message = sd_bus_message_ref(m);
        h->next = l->held;
        l->held = h;
        l->n_held++;
        bus_link_hold(l, size);
        bus_unread_reserve(l, h->need);
        return r;
}

/* Whose it is that the call is about: a session, or the project that one is to be made in; where there is neither, the caller's own. */
static uid_t find_owner(const BusLink *l, const Passage *p, const GateDetails *d) {
        uid_t owner;

        if (p->session)
                return session_record(p->session)->owner;
        if (p->action->permission == PERMISSION_CREATE && d->whole_project &&
            manager_project_owner(l->connection->face->manager, d->whole_project, &owner))
                return owner;
        return l->uid;
}

/* Whom the installed rule and defaults let through, for who is not; a host's own rules may say something else. */
static const char *who_may(const Authorizer *a, const Passage *p) {
        if (!a->cancel)
                return "";
        if (a->is_silent && a->is_silent(a))
                return ", and polkit, which knows who has that, gave no answer; systemctl status polkit says more";
        if (p->own && p->action->permission == PERMISSION_CREATE)
                return ", which members of group errand-users have, and administrators with their password";
        if (p->action->permission == PERMISSION_CREATE)
                return ", since the project is another account's: administrators have it, with their password";
        return p->own && p->action->permission != PERMISSION_MANAGE ? "" : ", which administrators have, with their password";
}

static AuthorizeRequest request_of(const BusLink *l, const char *sender, const Passage *p, const GateDetails *d) {
        return (AuthorizeRequest){
                .uid = l->uid,
                .sender = sender,
                .permission = p->action->permission,
                .own = p->own,
                .member = p->action->member,
                .session = p->session ? session_record(p->session)->id : NULL,
                .host = d->host,
                .duration = d->duration,
                .project = d->project,
        };
}

/* The same question that Start leads to, which has no arguments. Others' sessions need an administrator, of whom nobody is asked ahead. */
void gate_foresee_start(BusLink *l, Session *s) {
        Passage p = {.action = action_find(BUS_SESSION_INTERFACE, "Start", MEMBER_METHOD), .session = s};
        Authorizer *a = l->connection->face->authorizer;
        AuthorizeRequest q;
        GateDetails details;

        if (!a->foresee || !l->name)
                return;
        gate_details_read(NULL, NULL, p.action, s, 0, &details);
        p.own = find_owner(l, &p, &details) == l->uid;
        q = request_of(l, l->name, &p, &details);
        if (p.own)
                a->foresee(a, &q);
}

static int pass(BusLink *l, sd_bus_message *m, const Held *answer, Passage *p, sd_bus_error *error) {
        Caller caller = bus_link_caller(l);
        GateDetails details;
        AuthorizeRequest q;
        int r;

        r = find_action(l->connection, m, &p->action, error);
        if (r >= 0 && !answer && p->action->large && bus_connection_postpone(l->connection, m))
                return -EINPROGRESS;
        if (r >= 0)
                r = find_object_session(l, m, p, error);
        if (r < 0 || p->action->permission == PERMISSION_PUBLIC)
                return r;

        gate_details_read(m, &l->connection->said, p->action, p->session, p->object.number, &details);
        p->own = find_owner(l, p, &details) == l->uid;
        q = request_of(l, sd_bus_message_get_sender(m), p, &details);
        q.interactive = sd_bus_message_get_allow_interactive_authorization(m) > 0;
        r = authorize(l, m, answer, p, &q, error);
        if (r != 0)
                return r;
        if (p->action->permission == PERMISSION_ROOT)
                return bus_error_setf(error, BUS_ERROR_NOT_PERMITTED, "you may not set %s: only root may", p->action->member);
        if (p->session && !session_may_see(p->session, &caller))
                return bus_not_found(error, p->object.kind == BUS_OBJECT_GRANT ? "grant" :
                                            p->object.kind == BUS_OBJECT_RECEIPT ? "receipt" : "session");
        return bus_error_setf(error, BUS_ERROR_NOT_PERMITTED, "you may not use %s: it needs %s%s", p->action->member,
                              permission_action_id(p->action->permission, p->own), who_may(l->connection->face->authorizer, p));
}

/* What libsystemd itself tells, and what is none of the gate's: 1 or 0 for the filter, -EAGAIN: it is a call. */
static int pass_others(BusConnection *c, sd_bus_message *m) {
        uint8_t type;
        int r;

        /* libsystemd makes these itself and refuses them from outside. */
        if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Connected") > 0) {
                bus_connection_connected(c);
                return 1;
        }
        if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Disconnected") > 0) {
                bus_connection_lost(c);
                return !c->shared; /* others who use the connection want to know, too */
        }
        r = sd_bus_message_get_type(m, &type);
        if (r < 0)
                return r;
        if (type == SD_BUS_MESSAGE_METHOD_CALL)
                return -EAGAIN;
        /* A server waits for no signal and no answer of its clients; on a message bus there are others to wait for. */
        return !c->shared;
}

/* Of what libsystemd will answer, or the gate; handlers count what they say beyond it. */
static size_t answer_size(const Action *action) {
        return action && streq(action->member, "Introspect") ? BUS_UNREAD_INTROSPECT_BYTES : BUS_UNREAD_CALL_BYTES;
}

/* 0: it goes on; 1: that was all; -EINPROGRESS: it comes through again. */
static int let_pass(BusLink *l, sd_bus_message *m, Passage *p, sd_bus_error *error) {
        const char *interface = sd_bus_message_get_interface(m);
        Held *answer = held_take(l, m);
        int r;

        bus_delayed_came(l, m);
        r = answer ? 1 : bus_unread_may_answer(l, error); /* room for that one was kept */
        if (r <= 0) /* also of one that did not read its refusals: it may have just begun to */
                r = delay(l, m, DELAY_ROOM, action_find(interface ?: "", sd_bus_message_get_member(m), MEMBER_METHOD), r, error);
        if (r < 0 && r != -EINPROGRESS)
                bus_unread_add_refusal(l);
        if (r <= 0)
                return r < 0 ? r : 1;
        r = pass(l, m, answer, p, error);
        if (answer) {
                bus_delayed_wake(l, DELAY_AUTHORIZATION);
                bus_delayed_wake_later(l);
                held_free(answer);
        }
        if (r != -EINPROGRESS && sd_bus_message_get_expect_reply(m) > 0)
                bus_unread_add_answer(l, answer_size(p->action) + (r < 0 && error->message ? strlen(error->message) : 0));
        return MIN(r, 0);
}

int gate_filter(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Passage p = {.object.kind = _BUS_OBJECT_KIND_INVALID};
        BusConnection *c = userdata;
        BusLink *l = c->current;
        int r;

        r = pass_others(c, m);
        if (r != -EAGAIN)
                return r;
        if (c->shared) {
                c->current = c->target.link = NULL;
                r = bus_client_find(c, m, &l, error);
                if (r < 0)
                        return r == -EINPROGRESS ? 1 : r;
        }
        if (!l || l->dead)
                return 1;
        bus_connection_watch_queue(c);
        c->current = l;
        c->target = (BusTarget){.link = l};
        c->admitted = NULL;
        stored_receipt_list_done(&c->receipt);
        say_done(&c->said);
        r = let_pass(l, m, &p, error);
        bus_delayed_end(l, m);
        if (r < 0)
                return r == -EINPROGRESS ? 1 : r;
        if (r > 0)
                return 1;
        c->admitted = p.session;
        if (p.session && !p.own && (p.action->permission == PERMISSION_READ || p.action->permission == PERMISSION_ATTACH))
                bus_link_follow(l, session_record(p.session)->id);
        return 0;
}
