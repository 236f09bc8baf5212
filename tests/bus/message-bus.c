/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "basic/text.h"
#include "message-bus.h"

/* As the system bus's: nobody owns a name or calls anybody unless a service's policy says so. More connections of an account than its 256, to
 * fill tables. */
static const char configuration[] =
        "<busconfig><type>system</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>"
        "<policy context='default'><allow user='*'/><deny own='*'/><deny send_type='method_call'/><allow send_type='signal'/>"
        "<allow send_requested_reply='true' send_type='method_return'/><allow send_requested_reply='true' send_type='error'/>"
        "<allow receive_type='method_call'/><allow receive_type='method_return'/><allow receive_type='error'/><allow receive_type='signal'/>"
        "<allow send_destination='org.freedesktop.DBus'/><allow send_destination='org.errand1'/>"
        "<allow send_destination='org.freedesktop.PolicyKit1'/><allow send_destination='org.freedesktop.systemd1'/></policy>"
        "<policy user='%u'><allow own='org.errand1'/><allow own='org.freedesktop.PolicyKit1'/><allow own='org.freedesktop.systemd1'/>"
        "<allow send_interface='org.freedesktop.DBus.Peer' send_member='Ping' send_type='method_call'/></policy>"
        "<limit name='max_connections_per_user'>1024</limit><limit name='max_incoming_bytes'>8388608</limit>"
        "<limit name='max_outgoing_bytes'>8388608</limit></busconfig>";

static MessageBus kept; /* its daemon, with directory and address */

uid_t message_bus_account(void) {
        return geteuid() == 0 ? 65534 : geteuid();
}

uid_t message_bus_stranger(void) {
        return geteuid() == 0 ? 2 : geteuid();
}

/* It prints its address when it listens. */
static void start_daemon(MessageBus *b) {
        char config[96], text[sizeof(configuration) + 128], option[32];
        int ends[2], fd;

        (void) snprintf(config, sizeof(config), "%s/config", b->directory);
        (void) snprintf(text, sizeof(text), configuration, b->directory, (unsigned) geteuid());
        fd = open(config, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd) < 0 || pipe2(ends, O_CLOEXEC) < 0)
                abort();
        b->daemon = fork();
        if (b->daemon == 0) {
                char *const argv[] = {(char *) "dbus-daemon", (char *) "--nofork", (char *) "--nopidfile", option, config, NULL};

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) snprintf(option, sizeof(option), "--print-address=%d", ends[1]);
                memmove(config + strlen("--config-file="), config, strlen(config) + 1);
                memcpy(config, "--config-file=", strlen("--config-file="));
                /* It complains about its limit of descriptors. */
                if (fcntl(ends[1], F_SETFD, 0) == 0 && dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) >= 0)
                        execvp(argv[0], argv);
                _exit(127);
        }
        close(ends[1]);
        if (b->daemon < 0 || read(ends[0], text, sizeof(text)) <= 0)
                abort();
        close(ends[0]);
        (void) snprintf(b->address, sizeof(b->address), "%s/bus", b->directory);
}

/* A socket's peer is who connected: sd-bus itself has no part in it. */
static int connect_as(const char *path, uid_t uid) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        uid_t own = geteuid();
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void) snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
        if (uid != own && seteuid(uid) < 0)
                abort();
        if (connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                abort();
        if (uid != own && seteuid(own) < 0)
                abort();
        return fd;
}

sd_bus *message_bus_client(MessageBus *b, uid_t uid) {
        int fd = connect_as(b->address, uid);
        sd_bus *bus = NULL;

        if (sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 || sd_bus_set_bus_client(bus, true) < 0 ||
            sd_bus_negotiate_fds(bus, true) < 0 || sd_bus_start(bus) < 0 || sd_bus_attach_event(bus, b->world.event, 0) < 0)
                abort();
        while (sd_bus_is_ready(bus) == 0)
                if (sd_bus_is_open(bus) <= 0 || sd_event_run(b->world.event, UINT64_MAX) < 0)
                        abort();
        return bus;
}

sd_bus *message_bus_service(MessageBus *b, const char *name) {
        sd_bus *bus = message_bus_client(b, geteuid());

        if (sd_bus_request_name(bus, name, 0) < 0)
                abort();
        return bus;
}

static void begin_daemon(MessageBus *b) {
        (void) snprintf(b->directory, sizeof(b->directory), "/tmp/errand-bus-XXXXXX");
        if (!mkdtemp(b->directory) || chmod(b->directory, 0711) < 0)
                abort();
        start_daemon(b);
}

void message_bus_keep_daemon(void) {
        begin_daemon(&kept);
}

MessageBus *message_bus_new(void) {
        MessageBus *b = calloc(1, sizeof(MessageBus));

        if (sd_event_new(&b->world.event) < 0)
                abort();
        if (kept.daemon > 0)
                memcpy(b->address, kept.address, sizeof(b->address));
        else
                begin_daemon(b);
        b->world.manager = fake_manager(b->world.event);
        b->service = message_bus_client(b, geteuid());
        world_destination = BUS_NAME;
        return b;
}

static void on_lost(void *userdata) {
        ((MessageBus *) userdata)->lost++;
}

void message_bus_serve(MessageBus *b, Authorizer *a) {
        if (bus_new_on_bus(b->world.manager, b->service, &(BusOptions){.authorizer = a, .lost = on_lost, .userdata = b},
                           &b->world.bus) < 0)
                abort();
}

void message_bus_name(MessageBus *b) {
        Fault f = {};

        if (bus_request_name(b->service, &f) < 0)
                abort();
}

static int on_settled(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        *(bool *) userdata = true;
        return 1;
}

void message_bus_settle(MessageBus *b, sd_bus *client) {
        bool done = false;

        world_settle(&b->world);
        if (sd_bus_call_method_async(client, NULL, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId", on_settled,
                                     &done, NULL) < 0)
                abort();
        while (!done)
                if (sd_event_run(b->world.event, UINT64_MAX) < 0)
                        abort();
        world_settle(&b->world);
}

void message_bus_stop_daemon(MessageBus *b) {
        if (b->daemon <= 0)
                return;
        (void) kill(b->daemon, SIGKILL);
        (void) waitpid(b->daemon, NULL, 0);
        b->daemon = 0;
}

static void remove_file(const MessageBus *b, const char *name) {
        char path[96];

        (void) snprintf(path, sizeof(path), "%s/%s", b->directory, name);
        (void) unlink(path);
}

static void remove_daemon(MessageBus *b) {
        message_bus_stop_daemon(b);
        remove_file(b, "config");
        remove_file(b, "bus");
        (void) rmdir(b->directory);
}

void message_bus_end_daemon(void) {
        remove_daemon(&kept);
}

MessageBus *message_bus_free(MessageBus *b) {
        bus_free(b->world.bus);
        if (kept.daemon > 0) /* a daemon that goes on hears of the close some time later only */
                (void) sd_bus_release_name(b->service, BUS_NAME);
        sd_bus_flush_close_unref(b->service);
        if (*b->directory)
                remove_daemon(b);
        fake_manager_free(b->world.manager);
        sd_event_unref(b->world.event);
        free(b);
        world_destination = NULL;
        return NULL;
}

sd_bus *message_bus_begin(MessageBus *b, Authorizer *a) {
        message_bus_serve(b, a);
        message_bus_name(b);
        return message_bus_client(b, message_bus_account());
}

void message_bus_end(MessageBus **b, sd_bus **client) {
        *client = sd_bus_close_unref(*client);
        *b = message_bus_free(*b);
}
