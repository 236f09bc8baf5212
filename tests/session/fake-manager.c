/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* fake-manager MODE VERSION SOCKET GROUP: a user's service manager as far as errand-launch can tell, on a socket of its own. It writes what
 * it is asked to standard output, a line each.
 *
 *   made      moves the processes into a group GROUP/UNIT and says so; early: says so before it answers
 *   unmoved   says so and has not moved them
 *   refused   answers with an error
 *   failed    the job fails
 *   exists    once there is an older one of the name, which is gone after a StopUnit
 *   forgetful jobs and units are gone when they are asked after
 *   silent    never answers; hanging: answers and the job never ends
 *
 * SIGUSR1: somebody stops the last unit. SIGUSR2: somebody starts it, which does nothing. */

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/macro.h"
#include "basic/text.h"

#define PATH "/org/freedesktop/systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"
#define JOB PATH "/job/7"
#define STOP_OF_OTHERS PATH "/job/8"
#define START_OF_OTHERS PATH "/job/9"

static const char *mode, *version, *group;
static char unit[256];
static unsigned n_started;
static sd_bus *last;

static bool is(const char *name) {
        return streq(mode, name);
}

/* As PID 1 sees it: the number that a pidfd stands for. */
static int pidfd_number(int fd) {
        char path[64], line[256];
        int pid = -1;

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "Pid: %d", &pid) == 1)
                        break;
        if (f)
                fclose(f);
        return pid;
}

static int move(int pid) {
        char path[4096];

        printf("process %d\n", pid);
        if (is("unmoved") || !*group)
                return 0;
        (void) snprintf(path, sizeof(path), "%s/%s", group, unit);
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return -errno;
        (void) snprintf(path, sizeof(path), "%s/%s/cgroup.procs", group, unit);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || dprintf(fd, "%d", pid) < 0)
                return -errno;
        return 0;
}

static int read_value(sd_bus_message *m, const char *name) {
        const char *contents, *text;
        uint64_t number;
        uint32_t pid;
        int fd, flag;

        int r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        if (streq(contents, "s") && (r = sd_bus_message_read(m, "v", "s", &text)) >= 0)
                printf("property %s=%s\n", name, text);
        else if (streq(contents, "t") && (r = sd_bus_message_read(m, "v", "t", &number)) >= 0)
                printf("property %s=%" PRIu64 "\n", name, number);
        else if (streq(contents, "b") && (r = sd_bus_message_read(m, "v", "b", &flag)) >= 0)
                printf("property %s=%s\n", name, flag ? "yes" : "no");
        else if (streq(contents, "au") && (r = sd_bus_message_read(m, "v", "au", 1, &pid)) >= 0) {
                printf("property %s\n", name);
                r = move((int) pid);
        } else if (streq(contents, "ah") && (r = sd_bus_message_read(m, "v", "ah", 1, &fd)) >= 0) {
                printf("property %s\n", name);
                r = move(pidfd_number(fd));
        } else if (r >= 0)
                r = -EBADMSG;
        return r;
}

static int tell_removed(sd_bus *bus, const char *job, const char *result) {
        return sd_bus_emit_signal(bus, PATH, MANAGER, "JobRemoved", "uoss", 7, job, unit, result);
}

static int on_start(sd_bus_message *m, _unused_ void *userdata, sd_bus_error *error) {
        sd_bus *bus = sd_bus_message_get_bus(m);
        const char *name, *how;

        int r = sd_bus_message_read(m, "ss", &name, &how);
        if (r < 0)
                return r;
        (void) snprintf(unit, sizeof(unit), "%s", name);
        printf("start %s %s\n", unit, how);
        n_started++;
        if (is("exists") && n_started == 1)
                return sd_bus_error_setf(error, "org.freedesktop.systemd1.UnitExists", "Unit %s was already loaded", unit);
        r = sd_bus_message_enter_container(m, 'a', "(sv)");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sv")) > 0) {
                r = sd_bus_message_read(m, "s", &name);
                if (r >= 0)
                        r = read_value(m, name);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r < 0)
                return sd_bus_error_set_errno(error, r);
        if (is("refused"))
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "Not today,\nsays the manager");
        if (is("silent"))
                return 1;
        if (is("early"))
                (void) tell_removed(bus, JOB, "done");
        r = sd_bus_reply_method_return(m, "o", JOB);
        if (r < 0 || is("early") || is("hanging"))
                return r;
        (void) tell_removed(bus, STOP_OF_OTHERS, "failed"); /* not ours */
        r = tell_removed(bus, JOB, is("failed") ? "failed" : "done");
        printf("told %s\n", unit);
        return r;
}

static int on_stop(sd_bus_message *m, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        const char *name, *how;

        int r = sd_bus_message_read(m, "ss", &name, &how);
        if (r < 0)
                return r;
        printf("stop %s %s\n", name, how);
        r = sd_bus_reply_method_return(m, "o", STOP_OF_OTHERS);
        if (r >= 0 && is("exists"))
                r = sd_bus_emit_signal(sd_bus_message_get_bus(m), PATH, MANAGER, "UnitRemoved", "so", name, PATH "/unit/x");
        return r;
}

static int on_subscribe(sd_bus_message *m, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        printf("subscribed\n");
        return sd_bus_reply_method_return(m, NULL);
}

static int get_property(_unused_ sd_bus *bus, const char *path, _unused_ const char *interface, const char *property, sd_bus_message *reply,
                        _unused_ void *userdata, _unused_ sd_bus_error *error) {
        if (is("forgetful") && streq(property, "JobType"))
                return -ENOENT;
        if (streq(property, "JobType"))
                return sd_bus_message_append(reply, "s", streq(path, STOP_OF_OTHERS) ? "stop" : "start");
        if (streq(property, "Version"))
                return sd_bus_message_append(reply, "s", version);
        const char *below = startswith(group, "/sys/fs/cgroup");
        return sd_bus_message_append(reply, "s", below ?: "/nowhere");
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", on_start, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", on_stop, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Subscribe", "", "", on_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_property, 0, 0),
        SD_BUS_PROPERTY("ControlGroup", "s", get_property, 0, 0),
        SD_BUS_SIGNAL("JobNew", "uos", 0),
        SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
        SD_BUS_SIGNAL("UnitRemoved", "so", 0),
        SD_BUS_VTABLE_END,
};

static const sd_bus_vtable job_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("JobType", "s", get_property, 0, 0),
        SD_BUS_VTABLE_END,
};

static int on_connection(sd_event_source *source, int fd, _unused_ uint32_t revents, _unused_ void *userdata) {
        sd_id128_t id;
        sd_bus *bus;

        int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted < 0 || sd_id128_randomize(&id) < 0 || sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, accepted, accepted) < 0 ||
            sd_bus_set_server(bus, 1, id) < 0 || sd_bus_negotiate_fds(bus, 1) < 0 || sd_bus_start(bus) < 0 ||
            sd_bus_add_object_vtable(bus, NULL, PATH, MANAGER, manager_vtable, NULL) < 0 ||
            sd_bus_add_object_vtable(bus, NULL, JOB, "org.freedesktop.systemd1.Job", job_vtable, NULL) < 0 ||
            sd_bus_add_object_vtable(bus, NULL, START_OF_OTHERS, "org.freedesktop.systemd1.Job", job_vtable, NULL) < 0 ||
            sd_bus_add_object_vtable(bus, NULL, STOP_OF_OTHERS, "org.freedesktop.systemd1.Job", job_vtable, NULL) < 0 ||
            sd_bus_attach_event(bus, sd_event_source_get_event(source), 0) < 0)
                return sd_event_exit(sd_event_source_get_event(source), EXIT_FAILURE);
        last = bus; /* one launcher, as long as this lives */
        return 0;
}

static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *info, _unused_ void *userdata) {
        const char *job = info->ssi_signo == SIGUSR1 ? STOP_OF_OTHERS : START_OF_OTHERS;

        if (is("forgetful"))
                (void) snprintf(unit, sizeof(unit), "errand-session-back.scope");
        return last ? sd_bus_emit_signal(last, PATH, MANAGER, "JobNew", "uos", 8, job, unit) : 0;
}

int main(int argc, char *argv[]) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        sd_event *event = NULL;
        sigset_t set;

        if (argc != 5 || strlen(argv[3]) >= sizeof(address.sun_path))
                return fprintf(stderr, "usage: fake-manager MODE VERSION SOCKET GROUP\n"), 2;
        mode = argv[1];
        version = argv[2];
        group = argv[4];
        strcpy(address.sun_path, argv[3]);
        setvbuf(stdout, NULL, _IOLBF, 0);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGUSR1);
        (void) sigaddset(&set, SIGUSR2);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, 8) < 0 ||
            sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sd_event_new(&event) < 0 || sd_event_add_io(event, NULL, fd, EPOLLIN, on_connection, NULL) < 0 ||
            sd_event_add_signal(event, NULL, SIGUSR1, on_signal, NULL) < 0 || sd_event_add_signal(event, NULL, SIGUSR2, on_signal, NULL) < 0)
                return perror("fake-manager"), 1;
        printf("ready\n");
        return sd_event_loop(event) < 0 ? 1 : 0;
}
