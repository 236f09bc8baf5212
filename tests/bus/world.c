/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/socket.h>

#include "basic/text.h"
#include "shared/bus-error.h"
#include "world.h"

const char *world_destination;

static int test_check(Authorizer *a, const AuthorizeRequest *q, AuthorizeDone done, void *userdata, void **ret_ticket) {
        TestAuthorizer *t = (TestAuthorizer *) a;

        t->checks++;
        t->permission = q->permission;
        if (q->own || q->uid == geteuid())
                return 1;
        if (!t->hold)
                return 0;
        t->done[t->n_held] = done;
        t->userdata[t->n_held++] = userdata;
        *ret_ticket = t;
        return -EINPROGRESS;
}

static void test_cancel(Authorizer *a, _unused_ void *ticket) {
        ((TestAuthorizer *) a)->cancelled++;
}

static bool test_operator(_unused_ Authorizer *a, uid_t uid) {
        return uid == geteuid();
}

bool test_no_operator(_unused_ Authorizer *a, _unused_ uid_t uid) {
        return false;
}

int test_check_others(Authorizer *a, const AuthorizeRequest *q, _unused_ AuthorizeDone done, _unused_ void *userdata, _unused_ void **ret_ticket) {
        TestAuthorizer *t = (TestAuthorizer *) a;

        t->checks++;
        if (q->own || !t->hold)
                return q->own;
        t->done[t->n_held] = done;
        t->userdata[t->n_held++] = userdata;
        *ret_ticket = t;
        return -EINPROGRESS;
}

TestAuthorizer test_authorizer(void) {
        return (TestAuthorizer){.authorizer = {.check = test_check, .cancel = test_cancel, .operator = test_operator}};
}

World world_new(Authorizer *authorizer) {
        World w = {};

        if (sd_event_new(&w.event) < 0)
                abort();
        w.manager = fake_manager(w.event);
        if (bus_new(w.manager, -EBADF, &(BusOptions){.authorizer = authorizer}, &w.bus) < 0)
                abort();
        return w;
}

void world_done(World *w) {
        bus_free(w->bus);
        fake_manager_free(w->manager);
        sd_event_unref(w->event);
        *w = (World){};
}

sd_bus *world_client(World *w, uid_t uid) {
        sd_bus *client = NULL;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 || bus_adopt(w->bus, pair[0], uid) < 0 ||
            sd_bus_new(&client) < 0 || sd_bus_set_fd(client, pair[1], pair[1]) < 0 || sd_bus_negotiate_fds(client, true) < 0 ||
            sd_bus_start(client) < 0 || sd_bus_attach_event(client, w->event, 0) < 0)
                abort();
        while (sd_bus_is_ready(client) == 0) /* fds can be appended to a message after that only */
                if (sd_event_run(w->event, UINT64_MAX) < 0)
                        abort();
        return client;
}

void world_settle(World *w) {
        while (sd_event_run(w->event, 0) > 0)
                ;
}

const char *reply_error(const Reply *r) {
        return r->failed ? startswith(r->error, BUS_ERROR_PREFIX) ?: r->error : "no error";
}

void reply_done(Reply *r) {
        r->message = sd_bus_message_unref(r->message);
}

sd_bus_message *call_new(sd_bus *client, const char *path, const char *interface, const char *member) {
        sd_bus_message *m;

        if (sd_bus_message_new_method_call(client, &m, world_destination, path, interface, member) < 0)
                abort();
        return m;
}

static int on_reply(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Waiting *w = userdata;

        w->answered = true;
        w->reply.message = sd_bus_message_ref(m);
        if (e) {
                w->reply.failed = true;
                snprintf(w->reply.error, sizeof(w->reply.error), "%s", e->name);
                snprintf(w->reply.text, sizeof(w->reply.text), "%s", e->message ?: "");
        }
        return 1;
}

void call_start(sd_bus *client, sd_bus_message *m, Waiting *w) {
        *w = (Waiting){};
        /* However long it takes: what hangs is ended by who runs the test. */
        if (sd_bus_call_async(client, &w->slot, m, on_reply, w, UINT64_MAX) < 0)
                abort();
        sd_bus_message_unref(m);
}

void waiting_done(Waiting *w) {
        sd_bus_slot_unref(w->slot);
        reply_done(&w->reply);
        *w = (Waiting){};
}

Reply call_send(World *w, sd_bus *client, sd_bus_message *m) {
        Waiting waiting;

        call_start(client, m, &waiting);
        while (!waiting.answered)
                if (sd_event_run(w->event, UINT64_MAX) < 0)
                        abort();
        sd_bus_slot_unref(waiting.slot);
        return waiting.reply;
}

Reply call(World *w, sd_bus *client, const char *path, const char *interface, const char *member, const char *types, ...) {
        sd_bus_message *m = call_new(client, path, interface, member);
        va_list ap;
        int r = 0;

        va_start(ap, types);
        if (types)
                r = sd_bus_message_appendv(m, types, ap);
        va_end(ap);
        if (r < 0)
                abort();
        return call_send(w, client, m);
}

unsigned count_objects(World *w, sd_bus *client) {
        Reply r = call(w, client, BUS_ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", NULL);
        unsigned n = 0;

        if (r.failed || sd_bus_message_enter_container(r.message, 'a', "{oa{sa{sv}}}") <= 0)
                abort();
        while (sd_bus_message_skip(r.message, "{oa{sa{sv}}}") > 0)
                n++;
        reply_done(&r);
        return n;
}

int count_updates(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const char *kind, *name;
        UpdateCount *u = userdata;
        uint64_t count = 0;

        u->unsubscribed |= sd_bus_message_is_signal(m, NULL, "Unsubscribed") > 0;
        if (sd_bus_message_is_signal(m, NULL, "Update") <= 0 || sd_bus_message_read(m, "s", &kind) <= 0)
                return 0;
        u->texts += streq(kind, "message");
        u->ends += streq(kind, "turn-ended");
        if (streq(kind, "missed") && sd_bus_message_enter_container(m, 'a', "{sv}") > 0 && sd_bus_message_read(m, "{sv}", &name, "t", &count) > 0) {
                u->missed_signals++;
                u->missed += count;
        }
        return 1;
}
