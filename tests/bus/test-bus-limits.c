/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-link.h"
#include "test.h"
#include "world.h"

#define A1 BUS_SESSION_ROOT "/a1"

static World w;
static sd_bus *client;
static Session *a1;

static void begin(void) {
        w = world_new(NULL);
        a1 = fake_session(w.manager, "a1", geteuid());
        client = world_client(&w, geteuid());
}

static void end(void) {
        sd_bus_close_unref(client);
        world_done(&w);
}

static unsigned count_fds(void) {
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

static void wait_connections(size_t n) {
        while (bus_connections(w.bus) > n)
                CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
}

static void test_late_answer(void) {
        Waiting waiting;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;

        begin();
        w.manager->wait = true;
        call_start(client, call_new(client, A1, BUS_SESSION_INTERFACE, "Start"), &waiting);
        world_settle(&w);
        CHECK(!waiting.answered && a1->done);
        fake_finish(a1, ERROR_SETUP, "bailey: no such file", -EBADF);
        world_settle(&w);
        CHECK_ERROR(waiting.reply, "SetupFailed");
        CHECK_STR(waiting.reply.text, "bailey: no such file");
        waiting_done(&waiting);

        {
                sd_bus_message *m = call_new(client, A1, BUS_SESSION_INTERFACE, "Attach");

                CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                call_start(client, m, &waiting);
        }
        world_settle(&w);
        CHECK(!waiting.answered && a1->done);
        fake_finish(a1, ERROR_NONE, NULL, null); /* takes the fd */
        world_settle(&w);
        CHECK_FINE(waiting.reply);
        CHECK(sd_bus_message_read(waiting.reply.message, "h", &fd) > 0 && fcntl(fd, F_GETFD) >= 0);
        waiting_done(&waiting);
        end();
}

static void test_vanished(void) {
        static const char *const members[] = {"Start", "Stop", "Attach", "Collect"};

        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                sd_bus_message *m;
                Waiting waiting;
                unsigned fds;
                int null;

                begin();
                fds = count_fds();
                null = open("/dev/null", O_RDWR | O_CLOEXEC);
                w.manager->wait = true;
                m = call_new(client, A1, BUS_SESSION_INTERFACE, members[i]);
                if (streq(members[i], "Attach"))
                        CHECK(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                call_start(client, m, &waiting);
                world_settle(&w);
                CHECK(a1->done);
                waiting_done(&waiting);
                sd_bus_close(client);
                wait_connections(0);
                fake_finish(a1, ERROR_NONE, NULL, null);
                CHECK_INT(fcntl(null, F_GETFD), -1); /* the terminal nobody waits for is closed */
                CHECK(count_fds() <= fds);
                end();
        }
}

/* The daemon ends while a call is under way: its Done may come after the bus has gone. */
static void test_bus_gone(void) {
        Waiting waiting;

        begin();
        w.manager->wait = true;
        call_start(client, call_new(client, A1, BUS_SESSION_INTERFACE, "Stop"), &waiting);
        world_settle(&w);
        CHECK(a1->done);
        w.bus = bus_free(w.bus);
        fake_finish(a1, ERROR_NONE, NULL, -EBADF);
        waiting_done(&waiting);
        end();
}

static void test_operations(void) {
        static Waiting waiting[BUS_OPERATIONS_MAX + 4];
        Session *sessions[ELEMENTSOF(waiting)];
        unsigned refused = 0;

        begin();
        w.manager->wait = true;
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                char id[16];

                snprintf(id, sizeof(id), "s%zu", i);
                sessions[i] = fake_session(w.manager, id, geteuid());
                call_start(client, call_new(client, bus_session_path(id).text, BUS_SESSION_INTERFACE, "Start"), waiting + i);
        }
        world_settle(&w);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++)
                if (waiting[i].answered) {
                        CHECK_ERROR(waiting[i].reply, "LimitExceeded");
                        refused++;
                } else
                        fake_finish(sessions[i], ERROR_NONE, NULL, -EBADF);
        CHECK_INT(refused, 4);
        world_settle(&w);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                CHECK(waiting[i].answered);
                waiting_done(waiting + i);
        }
        end();
}

static int refuse_none(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        ++*(unsigned *) userdata;
        CHECK(!sd_bus_message_get_error(m));
        return 1;
}

static uint64_t most_queued(void) {
        uint64_t most = 0, n;

        for (BusConnection *c = w.bus->connections; c; c = c->next) {
                CHECK(sd_bus_get_n_queued_write(c->bus, &n) >= 0);
                most = MAX(most, n);
        }
        return most;
}

/* Ten thousand calls of a client that does not read until it has sent them all: what is kept for it is bounded, another client is served
 * meanwhile, and in the end every call has its answer. */
static void test_flood(void) {
        unsigned answers = 0;
        sd_bus *quiet;
        Reply r;

        begin();
        quiet = world_client(&w, geteuid());
        for (unsigned i = 0; i < 10000; i++)
                CHECK(sd_bus_call_method_async(client, NULL, NULL, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession", refuse_none,
                                               &answers, "s", "a1") >= 0);
        CHECK(sd_bus_detach_event(client) >= 0);
        for (unsigned i = 0; i < 100; i++) {
                r = call(&w, quiet, BUS_ROOT, BUS_MANAGER_INTERFACE, "GetSession", "s", "a1");
                CHECK_FINE(r);
                reply_done(&r);
                world_settle(&w);
                CHECK(most_queued() <= BUS_QUEUED_MAX + 2);
        }
        CHECK(sd_bus_attach_event(client, w.event, 0) >= 0);
        while (answers < 10000) {
                CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
                CHECK(most_queued() <= BUS_QUEUED_MAX + 2);
        }
        CHECK_INT(bus_connections(w.bus), 2);
        sd_bus_close_unref(quiet);
        end();
}

/* Small answers that nobody reads: the connection is set aside, not polled, and dropped when its client leaves. */
static void test_stuck(void) {
        unsigned answers = 0;

        begin();
        for (unsigned i = 0; i < 10000; i++)
                CHECK(sd_bus_call_method_async(client, NULL, NULL, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListThreads", refuse_none, &answers,
                                               NULL) >= 0);
        for (unsigned i = 0; i < 10000 && !w.bus->connections->throttle; i++) { /* sends and never reads */
                uint64_t queued;

                CHECK(sd_bus_get_n_queued_write(client, &queued) >= 0);
                CHECK(sd_bus_detach_event(client) >= 0);
                world_settle(&w);
                if (w.bus->connections->throttle)
                        break;
                CHECK(sd_bus_attach_event(client, w.event, 0) >= 0);
                CHECK(sd_event_run(w.event, 0) >= 0);
        }
        CHECK(w.bus->connections->throttle);
        CHECK_INT(sd_event_run(w.event, 0), 0); /* nothing to do */
        sd_bus_close(client);
        wait_connections(0);
        end();
}

/* Answers of a MiB to a client that reads late: a bounded number of them is made, and none is refused. */
static void test_large(void) {
        static Waiting waiting[64];

        begin();
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                sd_bus_message *m = call_new(client, A1, BUS_SESSION_INTERFACE, "ReadTranscript");

                CHECK(sd_bus_message_append(m, "tu", (uint64_t) 0, BUS_TRANSCRIPT_MAX) >= 0);
                call_start(client, m, waiting + i);
        }
        CHECK(sd_bus_flush(client) >= 0);
        CHECK(sd_bus_detach_event(client) >= 0);
        world_settle(&w);
        CHECK(most_queued() >= BUS_QUEUED_LARGE_MAX && most_queued() <= BUS_QUEUED_LARGE_MAX + 2);
        CHECK(sd_bus_attach_event(client, w.event, 0) >= 0);
        for (size_t i = 0; i < ELEMENTSOF(waiting); i++) {
                while (!waiting[i].answered) {
                        CHECK(sd_event_run(w.event, UINT64_MAX) >= 0);
                        CHECK(most_queued() <= BUS_QUEUED_LARGE_MAX + 2);
                }
                CHECK_FINE(waiting[i].reply);
                waiting_done(waiting + i);
        }
        end();
}

static size_t put_field(char *data, size_t at, char code, char type, const char *value) {
        uint32_t n = (uint32_t) strlen(value);

        at = (at + 7) / 8 * 8;
        data[at] = code;
        data[at + 1] = 1;
        data[at + 2] = type;
        memcpy(data + at + 4, &n, 4);
        memcpy(data + at + 8, value, n + 1);
        return at + 8 + n + 1;
}

/* A client that does not wait: authentication and its first calls in one write. */
static void check_one_write(uint32_t n_calls) {
        static const char auth[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
        char data[1024] = {}, answer[1024];
        size_t size = sizeof(auth) - 1, heard = 0;
        int pair[2];

        begin();
        memcpy(data, auth, size);
        for (uint32_t serial = 1; serial <= n_calls; serial++) {
                char call_data[256] = {'l', SD_BUS_MESSAGE_METHOD_CALL, 0, 1};
                uint32_t fields;
                size_t end;

                memcpy(call_data + 8, &serial, 4);
                end = put_field(call_data, 16, 1, 'o', serial == 1 ? "/org/freedesktop/DBus" : BUS_ROOT);
                end = put_field(call_data, end, 2, 's', serial == 1 ? "org.freedesktop.DBus" : "org.freedesktop.DBus.Peer");
                end = put_field(call_data, end, 3, 's', serial == 1 ? "Hello" : "Ping");
                fields = (uint32_t) (end - 16);
                memcpy(call_data + 12, &fields, 4);
                end = (end + 7) / 8 * 8;
                memcpy(data + size, call_data, end);
                size += end;
        }
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        CHECK_INT(write(pair[1], data, size), (ssize_t) size);
        CHECK_INT(bus_adopt(w.bus, pair[0], geteuid()), 0);
        world_settle(&w);
        for (ssize_t n; (n = recv(pair[1], answer + heard, sizeof(answer) - heard, MSG_DONTWAIT)) > 0;)
                heard += (size_t) n;
        /* Each answer names its call: field 5, a "u". */
        for (char serial = 1; serial <= (char) n_calls; serial++)
                CHECK(memmem(answer, heard, (char[]) {5, 1, 'u', 0, serial, 0, 0, 0}, 8));
        close(pair[1]);
        wait_connections(1);
        end();
}

static void test_one_write(void) {
        check_one_write(1); /* all of it is read with the authentication */
        check_one_write(3);
}

static void test_connections(void) {
        static sd_bus *clients[BUS_CONNECTIONS_MAX];
        int pair[2];

        begin();
        for (size_t i = 1; i < ELEMENTSOF(clients); i++)
                clients[i] = world_client(&w, geteuid());
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        CHECK_INT(bus_adopt(w.bus, pair[0], geteuid()), -EMFILE);
        CHECK_INT(fcntl(pair[0], F_GETFD), -1);
        close(pair[1]);
        for (size_t i = 1; i < ELEMENTSOF(clients); i++)
                clients[i] = sd_bus_close_unref(clients[i]);
        wait_connections(1);
        end();
}

static void test_garbage(void) {
        static const struct {
                const char *data;
                size_t size;
        } garbage[] = {
                {"GET / HTTP/1.1\r\n\r\n", 18},
                {"\0AUTH ANONYMOUS\r\nBEGIN\r\n", 24},
                {"\0AUTH EXTERNAL 34323934393637323935\r\nBEGIN\r\n", 45}, /* another uid */
                {"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\nlBBB\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 46}, /* a header of 4 GiB */
        };

        begin();
        for (size_t i = 0; i < ELEMENTSOF(garbage); i++) {
                int pair[2];

                CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
                CHECK_INT(bus_adopt(w.bus, pair[0], geteuid()), 0);
                CHECK_INT(write(pair[1], garbage[i].data, garbage[i].size), (int) garbage[i].size);
                shutdown(pair[1], SHUT_WR);
                wait_connections(1);
                close(pair[1]);
        }
        CHECK_INT(w.manager->acts, 0);
        end();
}

/* Five thousand clients that leave without waiting, each with a call under way or half sent. */
static void test_many_vanish(void) {
        unsigned fds;

        begin();
        fds = count_fds();
        for (unsigned i = 0; i < 1000; i++) {
                sd_bus *c = world_client(&w, STRANGER);
                sd_bus_message *m = call_new(c, A1, BUS_SESSION_INTERFACE, "Start");

                CHECK(sd_bus_message_set_expect_reply(m, false) >= 0);
                CHECK(sd_bus_send(c, m, NULL) >= 0);
                sd_bus_message_unref(m);
                sd_bus_flush_close_unref(c);
                if (i % 32 == 0)
                        wait_connections(1);
        }
        wait_connections(1);
        CHECK_INT(w.manager->acts, 0);
        CHECK(count_fds() <= fds);
        end();
}

/* The listening socket: the peer's uid is the kernel's word. */
static void test_listen(void) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(sa_family_t);
        sd_bus *c = NULL;
        Manager *m;
        Bus *bus;
        Reply r;

        /* An abstract name of the kernel's choice. */
        CHECK(bind(listener, (struct sockaddr *) &address, size) == 0 && listen(listener, 8) == 0);
        size = sizeof(address);
        CHECK(getsockname(listener, (struct sockaddr *) &address, &size) == 0);
        begin();
        m = fake_manager(w.event);
        CHECK_INT(bus_new(m, listener, NULL, &bus), 0);
        CHECK(connect(fd, (struct sockaddr *) &address, size) == 0);
        CHECK(sd_bus_new(&c) >= 0 && sd_bus_set_fd(c, fd, fd) >= 0 && sd_bus_start(c) >= 0);
        CHECK(sd_bus_attach_event(c, w.event, 0) >= 0);
        r = call(&w, c, BUS_ROOT, BUS_MANAGER_INTERFACE, "Reload", NULL);
        CHECK_FINE(r);
        reply_done(&r);
        CHECK_INT(m->acts, 1);
        sd_bus_close_unref(c);
        bus_free(bus);
        CHECK_INT(fcntl(listener, F_GETFD), -1);
        fake_manager_free(m);
        end();
}

int main(void) {
        RUN(test_late_answer, "calls are answered when their sessions are done");
        RUN(test_vanished, "C194: a client that vanishes before the answer");
        RUN(test_bus_gone, "an answer that comes after the bus has gone");
        RUN(test_operations, "calls under way are bounded");
        RUN(test_flood, "ten thousand calls are answered, and others meanwhile");
        RUN(test_stuck, "C204: a client that sends and never reads costs nothing more, and can leave");
        RUN(test_large, "C204: large answers that are not read are bounded");
        RUN(test_one_write, "authentication and the first calls in one write");
        RUN(test_connections, "connections are bounded");
        RUN(test_garbage, "C195: what is no D-Bus, or another's uid, is cut off");
        RUN(test_many_vanish, "C194: a thousand strangers that leave at once");
        RUN(test_listen, "the private socket serves the own account");
        return TEST_END();
}
