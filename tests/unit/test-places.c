/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/events.h"
#include "errandd/paths.h"
#include "errandd/ports.h"
#include "test.h"

static char base[64];

static void in_base(const char *name, char *buffer, size_t size) {
        (void) snprintf(buffer, size, "%s/%s", base, name);
}

static void opens(const char *state, const char *problem) {
        Paths *p = NULL;
        Fault f = {};

        if (paths_embedded(state, NULL, &p, &f) < 0)
                test_fail(__FILE__, __LINE__, "%s", f.text);
        int r = paths_open(p, &f);
        if (!problem && r < 0)
                test_fail(__FILE__, __LINE__, "%s", f.text);
        if (problem && (r >= 0 || !strstr(f.text, problem)))
                test_fail(__FILE__, __LINE__, "%s", r >= 0 ? "opened" : f.text);
        fault_done(&f);
        paths_free(p);
}

static void test_names(void) {
        Paths *p = NULL;
        Fault f = {};

        CHECK_INT(paths_embedded("/a/./b/../c", "/etc/x.json", &p, &f), 0);
        CHECK_STR(p->state, "/a/c");
        CHECK_STR(p->runtime, "/a/c/.run");
        CHECK_STR(p->bus, "/a/c/.run/bus");
        CHECK_STR(p->config, "/etc/x.json");
        p = paths_free(p);
        CHECK_INT(setenv("ERRAND_EMBEDDED_STATE", "/from/environment", 1), 0);
        CHECK_INT(paths_embedded(NULL, NULL, &p, &f), 0);
        CHECK_STR(p->state, "/from/environment");
        p = paths_free(p);
        CHECK_INT(unsetenv("ERRAND_EMBEDDED_STATE"), 0);
        CHECK_INT(paths_embedded(NULL, NULL, &p, &f), 0);
        if (geteuid() == 0) {
                CHECK_STR(p->state, "/var/lib/errand-embedded");
                CHECK_STR(p->bus, "/run/errand-embedded/bus");
        } else
                CHECK(endswith(p->state, "/errand-embedded"));
        paths_free(p);
}

static void test_directories(void) {
        char path[128], other[128];
        struct stat st;

        in_base("deep/er/state", path, sizeof(path));
        opens(path, NULL);
        CHECK_INT(stat(path, &st), 0);
        CHECK_INT(st.st_mode & 0777, geteuid() == 0 ? 0711 : 0700);
        in_base("deep/er/state/.run", other, sizeof(other));
        CHECK_INT(stat(other, &st), 0);
        CHECK_INT(st.st_mode & 0077, geteuid() == 0 ? 0011 : 0);

        in_base("link", other, sizeof(other));
        CHECK_INT(symlink(path, other), 0);
        opens(other, "links are not followed there");
        in_base("file", other, sizeof(other));
        close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        opens(other, "no directory that can be used");
        if (geteuid() == 0) {
                in_base("stranger", other, sizeof(other));
                CHECK_INT(mkdir(other, 0700), 0);
                CHECK_INT(chown(other, 1234, 1234), 0);
                opens(other, "belongs to uid 1234");
        }
        in_base("open", other, sizeof(other));
        CHECK_INT(mkdir(other, 0777), 0);
        CHECK_INT(chmod(other, 0777), 0);
        opens(other, NULL);
        CHECK_INT(stat(other, &st), 0);
        CHECK_INT(st.st_mode & 0022, 0);
}

static void test_ports(void) {
        static Ports p;
        static uint8_t seen[65536];
        uint16_t port, first = 0;
        size_t n = 0;

        while (ports_take(&p, &port) >= 0) {
                CHECK(port >= PORT_FIRST && port <= PORT_LAST && !seen[port]);
                seen[port] = 1;
                first = first ?: port;
                n++;
        }
        CHECK_INT(n, PORT_LAST - PORT_FIRST + 1);
        ports_release(&p, first);
        CHECK_INT(ports_take(&p, &port), 0);
        CHECK_INT(port, first);
        ports_release(&p, 1);
        CHECK_INT(ports_take(&p, &port), -EAGAIN);
}

static unsigned n_started, n_exited;
static char reason[32];

static void on_event(const SessionEvent *e, _unused_ void *userdata) {
        n_started += e->kind == SESSION_EVENT_STARTED;
        n_exited += e->kind == SESSION_EVENT_EXITED;
        if (e->reason)
                (void) snprintf(reason, sizeof(reason), "%s %llu", e->reason, (unsigned long long) e->status);
}

static void add(int fd, const char *line) {
        CHECK(write(fd, line, strlen(line)) == (ssize_t) strlen(line));
}

static void test_events(void) {
        char path[128];
        uint64_t offset = 0;
        unsigned damaged = 0;

        in_base("events", path, sizeof(path));
        _cleanup_close_ int fd = open(path, O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        add(fd, "{\"event\":\"started\",\"time\":12,\"pid\":3}\n{\"event\":\"exi");
        CHECK_INT(events_read(fd, &offset, on_event, NULL, &damaged), 0);
        CHECK_INT(n_started, 1);
        CHECK_INT(n_exited, 0);
        add(fd, "ted\",\"reason\":\"exited\",\"status\":7}\nno JSON\n\n{\"event\":\"exited\",\"reason\":1}\n{\"event\":\"unknown\"}\n");
        CHECK_INT(events_read(fd, &offset, on_event, NULL, &damaged), 0);
        CHECK_INT(n_exited, 1);
        CHECK_STR(reason, "exited 7");
        CHECK_INT(damaged, 2);

        char *longer = malloc(EVENT_LINE_MAX + 100);
        memset(longer, 'x', EVENT_LINE_MAX + 98);
        strcpy(longer + EVENT_LINE_MAX + 98, "\n");
        add(fd, longer);
        free(longer);
        add(fd, "{\"event\":\"started\"}\n");
        CHECK_INT(events_read(fd, &offset, on_event, NULL, &damaged), 0);
        CHECK_INT(n_started, 2);
        CHECK_INT(ftruncate(fd, 10), 0);
        CHECK_INT(events_read(fd, &offset, on_event, NULL, &damaged), -ESTALE);
}

/* Whose shim it is may write faster than it is read. */
static void test_flood(void) {
        char path[128], lines[4097];
        uint64_t offset = 0;
        unsigned damaged = 0;

        in_base("flood", path, sizeof(path));
        _cleanup_close_ int fd = open(path, O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        memset(lines, '\n', sizeof(lines));
        lines[0] = 'x';
        lines[sizeof(lines) - 1] = 0;
        for (size_t n = 0; n <= 2 * EVENTS_MAX; n += strlen(lines))
                add(fd, lines);
        CHECK_INT(events_read(fd, &offset, on_event, NULL, &damaged), -E2BIG);
        CHECK(offset >= EVENTS_MAX && offset < EVENTS_MAX + EVENT_LINE_MAX);
}

int main(void) {
        strcpy(base, "/tmp/errand-places-XXXXXX");
        if (!mkdtemp(base))
                return 1;
        RUN(test_names, "places of embedded mode, by option, variable and default");
        RUN(test_directories, "C109: directories of ours alone, made closed, and never over a link");
        RUN(test_flood, "C204: events are read up to a bound, whoever writes them on and on");
        RUN(test_ports, "S042: no two live sessions have one port");
        RUN(test_events, "C200: events are read by whole lines, whatever their holder writes; a shorter file is tampering");
        if (fork() == 0) {
                execl("/bin/rm", "rm", "-rf", "--", base, NULL);
                _exit(1);
        }
        return TEST_END();
}
