/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"
#include "errand/listener.h"
#include "errand/message-bus.h"
#include "shared/bus-object.h"

#define RETRY_MSEC 500 /* an errandd of one's own comes back without telling anybody */

void listener_leave(Listener *l, int code) {
        if (l->leaving)
                return;
        l->leaving = true;
        l->code = code;
}

/* Asks for signals first, so that nothing falls between them and what is asked for then. */
static int catch_up(Listener *l, bool again) {
        int r = manager_call(l->connection, "Subscribe", "Failed to listen to errandd", NULL, NULL);

        return r == EXIT_OK ? l->calls->ready(again, l->userdata) : r;
}

static void catch_up_again(Listener *l) {
        int r = catch_up(l, true);

        if (r != EXIT_OK && r != EXIT_NO_DAEMON) /* gone again: told by the next signal */
                listener_leave(l, r);
}

/* On a message bus errandd may be restarted, and this connection stays. */
static int on_owner(sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error) {
        const char *name, *owner;
        Listener *l = userdata;

        if (!streq_ptr(sd_bus_message_get_sender(message), BUS_DRIVER) || sd_bus_message_read(message, "sss", &name, NULL, &owner) < 0 ||
            !streq(name, BUS_NAME))
                return 0;
        if (!*owner) {
                l->calls->event(LISTENER_GONE, l->userdata);
                return 0;
        }
        if (connection_set_owner(l->connection, owner) != EXIT_OK) {
                listener_leave(l, EXIT_FAILED);
                return 0;
        }
        l->calls->event(LISTENER_BACK, l->userdata);
        catch_up_again(l);
        return 0;
}

static int on_message(sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error) {
        const char *interface, *member;
        Listener *l = userdata;
        uint8_t type;

        if (sd_bus_message_get_type(message, &type) < 0 || type != SD_BUS_MESSAGE_SIGNAL)
                return 0;
        interface = sd_bus_message_get_interface(message);
        member = sd_bus_message_get_member(message);
        if (!interface || !member)
                return 0;
        if (streq(interface, BUS_DRIVER ".Local")) {
                l->disconnected = true;
                return 0;
        }
        if (l->leaving || !connection_is_errandd(l->connection, message))
                return 0;
        if (streq(interface, BUS_MANAGER_INTERFACE) && streq(member, "Unsubscribed")) {
                l->calls->event(LISTENER_MISSED, l->userdata);
                catch_up_again(l);
        } else
                l->calls->signal(message, interface, member, l->userdata);
        return 0;
}

static int listen_to(Listener *l) {
        sd_bus *bus = l->connection->bus;
        int r;

        l->connection->listens = true;
        r = sd_bus_add_filter(bus, NULL, on_message, l);
        if (r >= 0 && l->connection->owner)
                r = sd_bus_add_match(bus, NULL, "type='signal',sender='" BUS_DRIVER "',member='NameOwnerChanged',arg0='" BUS_NAME "'", on_owner, l);
        if (r < 0) {
                log_error_errno(r, "Failed to listen to errandd: %m");
                return EXIT_FAILED;
        }
        return EXIT_OK;
}

static int wait_msec(const Listener *l) {
        usec_t now = now_monotonic();

        return l->wake == 0 ? -1 : l->wake <= now ? 0 : (int) MIN((l->wake - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC, (usec_t) INT_MAX);
}

/* Whatever may come beside messages. `bus` may be -1; events are those that are wanted of it. */
static void await(Listener *l, int bus, short events, int msec) {
        struct pollfd ends[] = {{.fd = bus, .events = events}, {.fd = STDOUT_FILENO /* POLLERR */}, {.fd = l->interrupts, .events = POLLIN}};
        struct signalfd_siginfo info;
        int n = poll(ends, ELEMENTSOF(ends), msec);

        if (n > 0 && ends[1].revents) /* a reader that has seen enough */
                listener_leave(l, EXIT_OK);
        if (n > 0 && (ends[2].revents & POLLIN) && read(l->interrupts, &info, sizeof(info)) == sizeof(info) && l->calls->interrupted)
                l->calls->interrupted(l->userdata);
        if (l->wake > 0 && l->wake <= now_monotonic()) {
                l->wake = 0;
                if (l->calls->woken)
                        l->calls->woken(l->userdata);
        }
}

/* Until the connection breaks, or it is enough. */
static int follow(Listener *l) {
        sd_bus *bus = l->connection->bus;

        while (!l->leaving && !l->disconnected) {
                int r = sd_bus_process(bus, NULL);

                if (r > 0)
                        continue;
                if (r >= 0)
                        r = sd_bus_get_events(bus);
                if (r < 0) {
                        l->disconnected = true;
                        break;
                }
                await(l, sd_bus_get_fd(bus), (short) r, wait_msec(l));
        }
        return l->code;
}

/* Only an errandd of one's own is behind the connection itself. */
static int await_another(Listener *l) {
        l->calls->event(LISTENER_ENDED, l->userdata);
        while (!l->leaving) {
                Connection *c = NULL;

                if (connection_again(l->request, &c) == EXIT_OK) {
                        connection_free(l->connection);
                        l->connection = c;
                        l->disconnected = false;
                        l->calls->event(LISTENER_BACK, l->userdata);
                        return EXIT_OK;
                }
                await(l, -1, 0, RETRY_MSEC);
        }
        return l->code;
}

int listener_run(Listener *l, ConnectFlags flags) {
        bool again = false;
        int r = connection_open(l->request, flags, &l->connection);

        while (r == EXIT_OK && !l->leaving) {
                r = listen_to(l);
                if (r == EXIT_OK)
                        r = catch_up(l, again);
                if (r == EXIT_OK)
                        r = follow(l);
                if (!l->leaving && (r == EXIT_NO_DAEMON || l->disconnected)) {
                        if (l->connection->mode != CONNECT_EMBEDDED) {
                                log_error("%s is gone, and errandd with it", l->connection->place);
                                r = EXIT_NO_DAEMON;
                                break;
                        }
                        r = await_another(l);
                        again = true;
                }
        }
        l->connection = connection_free(l->connection);
        return r;
}
