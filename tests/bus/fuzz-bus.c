/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/action.h"
#include "random-message.h"

/* test-fuzz-bus SOCKET UID SEED SECONDS CALLS deny|allow: calls whatever there may be of errandd's, with arguments of any kind, over several connections to
 * a message bus that come and go. CALLS 0: until the time is over. Where everything is denied, what is answered all the same has to be
 * for everybody. Ends with the counts on standard output, and 1 when something was let through. */

#define CONNECTIONS 4U
#define WINDOW 4U /* calls of a connection that are under way: all of an account's may wait for polkit */
#define ANSWER_USEC (20 * USEC_PER_SEC)

typedef struct Connection {
        sd_bus *bus;
        unsigned pending;
} Connection;

static const char *socket_path;
static uid_t uid;
static bool deny;
static sd_event *event;
static Connection connections[CONNECTIONS];
static unsigned long calls, answers, errors, dropped, unanswered, leaks, reconnects;

typedef struct Sent {
        Connection *connection;
        sd_bus *bus; /* which it was sent over */
        bool open;   /* for everybody */
        char what[160];
} Sent;

static int on_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        Sent *s = userdata;

        if (s->connection->bus == s->bus)
                s->connection->pending--;
        if (!e) {
                answers++;
                if (deny && !s->open) {
                        leaks++;
                        printf("let through: %s\n", s->what);
                }
        } else if (sd_bus_is_open(s->bus) <= 0) {
                dropped++; /* the bus threw it out, and who is gone gets no answers */
        } else if (sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY) || sd_bus_error_has_name(e, SD_BUS_ERROR_TIMEOUT)) {
                unanswered++;
                printf("not answered: %s\n", s->what);
        } else
                errors++;
        return 1;
}

static void connect_again(Connection *c) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        uid_t own = geteuid();
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        c->bus = sd_bus_close_unref(c->bus);
        c->pending = 0;
        (void) snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
        if ((uid != own && seteuid(uid) < 0) || connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0 || (uid != own && seteuid(own) < 0) ||
            sd_bus_new(&c->bus) < 0 || sd_bus_set_fd(c->bus, fd, fd) < 0 || sd_bus_set_bus_client(c->bus, true) < 0 ||
            sd_bus_negotiate_fds(c->bus, true) < 0 || sd_bus_start(c->bus) < 0 || sd_bus_attach_event(c->bus, event, 0) < 0) {
                fprintf(stderr, "the message bus cannot be reached: %m\n");
                exit(2);
        }
        while (sd_bus_is_ready(c->bus) == 0)
                if (sd_event_run(event, UINT64_MAX) < 0)
                        exit(2);
        reconnects++;
}

/* Public in the table, or told by the object tree itself, which is filtered. */
static bool for_everybody(const RandomCall *r) {
        const Action *a;

        if (streq(r->interface, "org.freedesktop.DBus.Properties")) {
                /* GetAll of an interface whose properties are all public is public. */
                a = action_find(r->of, *r->property ? r->property : "LogLevel", MEMBER_READ);
                return !streq(r->member, "Set") && a && a->permission == PERMISSION_PUBLIC;
        }
        a = action_find(r->interface, r->member, MEMBER_METHOD);
        return a && a->permission == PERMISSION_PUBLIC;
}

static void call(Connection *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus_slot *slot = NULL;
        RandomCall r;
        Sent *s;

        if (random_call(c->bus, &m, &r) < 0)
                return; /* not every path, name and text can be sent */
        calls++;
        if (!r.answered) {
                (void) sd_bus_send(c->bus, m, NULL);
                return;
        }
        s = calloc(1, sizeof(Sent));
        *s = (Sent){.connection = c, .bus = c->bus, .open = for_everybody(&r)};
        (void) snprintf(s->what, sizeof(s->what), "%s.%s of %.64s (%s)", r.interface, r.member, r.path, sd_bus_message_get_signature(m, true));
        if (sd_bus_call_async(c->bus, &slot, m, on_answer, s, ANSWER_USEC) < 0) {
                free(s);
                return;
        }
        (void) sd_bus_slot_set_destroy_callback(slot, free);
        (void) sd_bus_slot_set_floating(slot, true);
        sd_bus_slot_unref(slot);
        c->pending++;
}

static void turn(void) {
        for (size_t i = 0; i < CONNECTIONS; i++) {
                Connection *c = connections + i;

                /* One that leaves with calls under way; and one that the bus has thrown out, whose word it did not like. */
                if (sd_bus_is_open(c->bus) <= 0 || random_below(2000) == 0)
                        connect_again(c);
                while (c->pending < WINDOW && random_below(8) != 0)
                        call(c);
        }
}

static bool busy(void) {
        for (size_t i = 0; i < CONNECTIONS; i++)
                if (connections[i].pending > 0)
                        return true;
        return false;
}

int main(int argc, char *argv[]) {
        uint64_t number, seed, seconds, most;
        usec_t until;

        if (argc != 7 || parse_u64(argv[2], UINT32_MAX, &number) < 0 || parse_u64(argv[3], UINT64_MAX, &seed) < 0 ||
            parse_u64(argv[4], 1000000, &seconds) < 0 || parse_u64(argv[5], UINT32_MAX, &most) < 0 || sd_event_new(&event) < 0)
                return 2;
        socket_path = argv[1];
        uid = (uid_t) number;
        deny = streq(argv[6], "deny");
        random_begin(seed);
        for (size_t i = 0; i < CONNECTIONS; i++)
                connect_again(connections + i);
        until = now_monotonic() + seconds * USEC_PER_SEC;
        while (now_monotonic() < until && (most == 0 || calls < most)) {
                turn();
                if (sd_event_run(event, busy() ? UINT64_MAX : 0) < 0)
                        return 2;
        }
        while (busy())
                if (sd_event_run(event, UINT64_MAX) < 0)
                        return 2;
        for (size_t i = 0; i < CONNECTIONS; i++)
                sd_bus_flush_close_unref(connections[i].bus);
        sd_event_unref(event);
        printf("%lu calls: %lu answers, %lu errors, %lu not answered, %lu let through; %lu connections\n", calls, answers, errors, unanswered, leaks,
               reconnects);
        return leaks > 0 || unanswered > 0;
}
