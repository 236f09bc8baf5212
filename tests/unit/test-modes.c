/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the modes keep things, and with which rights. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/paths.h"
#include "errandd/ports.h"
#include "test.h"

static char base[64];

static void test_table(void) {
        const Mode *system = mode_of(CONFIG_SYSTEM, 990), *user = mode_of(CONFIG_USER, 1000), *embedded = mode_of(CONFIG_EMBEDDED, 1000),
                   *root = mode_of(CONFIG_EMBEDDED, 0);

        CHECK(system->units && system->project_names && !system->changes_account);
        CHECK_STR(system->payload, "errand-agent");
        CHECK(user->units && !user->project_names && !user->payload && !user->changes_account);
        CHECK(!embedded->units && !embedded->changes_account && !embedded->payload);
        CHECK(!root->units && root->changes_account);
        /* Where everything has one account nobody else is to get in. */
        CHECK_INT(user->own | user->broker | user->state | user->top, 0700);
        CHECK_INT(embedded->own | embedded->broker | embedded->state | embedded->top, 0700);
}

static mode_t mode_of_fd(int fd) {
        struct stat st;
        CHECK(fstat(fd, &st) >= 0);
        return st.st_mode & 07777;
}

/* With the parent's setgid bit, as systemd-tmpfiles makes it, and as a service that may not set that bit needs it. */
static void test_directories(void) {
        const Mode *m = mode_of(CONFIG_SYSTEM, geteuid());
        Identity payload = {.uid = geteuid(), .gid = getegid()};
        char path[96];
        mode_t mask = umask(0077);

        (void) snprintf(path, sizeof(path), "%s/state", base);
        CHECK_INT(mkdir(path, 0700), 0);
        CHECK_INT(chmod(path, 02710), 0);
        _cleanup_close_ int state_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_close_ int own = mode_open_own(m, state_fd, "s1", &payload), broker = mode_open_broker(m, own, &payload),
                            state = mode_open_state(m, own, &payload), again = mode_open_own(m, state_fd, "s1", &payload);
        CHECK(own >= 0 && broker >= 0 && state >= 0 && again >= 0);
        CHECK_INT(mode_of_fd(own), 02750);
        CHECK_INT(mode_of_fd(broker), 02750);
        CHECK_INT(mode_of_fd(state), 02770);
        CHECK_INT(umask(mask), 0077);
        /* A link in its place is not followed. */
        CHECK_INT(symlinkat("s1", state_fd, "s2"), 0);
        CHECK(mode_open_own(m, state_fd, "s2", &payload) < 0);
}

static void test_system(void) {
        Paths *p = NULL;
        Fault f = {};

        int r = paths_system("/etc/other.json", &p, &f);
        if (geteuid() == 0) {
                CHECK(r < 0 && strstr(f.text, "systemctl start errandd"));
                fault_done(&f);
                return;
        }
        CHECK_INT(r, 0);
        CHECK_STR(p->state, "/var/lib/errand");
        CHECK_STR(p->runtime, "/run/errand");
        CHECK_STR(p->config, "/etc/other.json");
        CHECK(!p->bus);
        char *socket = NULL;
        CHECK_INT(paths_session_socket(p, "s1", &socket), 0);
        CHECK_STR(socket, "/var/lib/errand/s1/broker/session");
        free(socket);
        paths_free(p);
}

static void test_user(void) {
        char runtime[96], expected[128];
        struct stat st;
        Paths *p = NULL;
        Fault f = {};

        (void) snprintf(runtime, sizeof(runtime), "%s/run", base);
        CHECK_INT(mkdir(runtime, 0700), 0);
        CHECK_INT(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
        CHECK_INT(setenv("XDG_STATE_HOME", base, 1), 0);
        int r = paths_user(NULL, &p, &f);
        if (geteuid() == 0) {
                CHECK(r < 0 && strstr(f.text, "uid 0"));
                fault_done(&f);
                return;
        }
        CHECK_INT(r, 0);
        CHECK_INT(paths_open(p, &f), 0);
        (void) snprintf(expected, sizeof(expected), "%s/run/errand", base);
        CHECK_STR(p->runtime, expected);
        CHECK_INT(stat(expected, &st), 0);
        CHECK_INT(st.st_mode & 07777, 0700);
        (void) snprintf(expected, sizeof(expected), "%s/errand", base);
        CHECK_STR(p->state, expected);
        char *socket = NULL;
        CHECK_INT(paths_session_socket(p, "s1", &socket), 0);
        (void) snprintf(expected, sizeof(expected), "%s/run/errand/session/s1", base);
        CHECK_STR(socket, expected);
        free(socket);
        p = paths_free(p);
        /* A directory that others can write is nobody's to keep sockets in. */
        CHECK_INT(chmod(runtime, 0777), 0);
        CHECK(paths_user(NULL, &p, &f) < 0 && strstr(f.text, "XDG_RUNTIME_DIR"));
        fault_done(&f);
        CHECK_INT(unsetenv("XDG_RUNTIME_DIR"), 0);
        CHECK(paths_user(NULL, &p, &f) < 0 && strstr(f.text, "XDG_RUNTIME_DIR"));
        fault_done(&f);
}

static void test_ports(void) {
        static Ports ports;
        uint16_t port;

        CHECK_INT(ports_reserve(&ports, 20001), 0);
        CHECK_INT(ports_reserve(&ports, 20001), -EBUSY);
        CHECK_INT(ports_reserve(&ports, 80), -ERANGE);
        ports_release(&ports, 20001);
        CHECK_INT(ports_reserve(&ports, 20001), 0);
        for (unsigned i = 0; i < PORT_LAST - PORT_FIRST; i++) {
                CHECK_INT(ports_take(&ports, &port), 0);
                CHECK(port != 20001);
        }
        CHECK_INT(ports_take(&ports, &port), -EAGAIN);
}

int main(void) {
        char command[96];

        strcpy(base, "/tmp/errand-modes-XXXXXX");
        if (!mkdtemp(base))
                return 1;
        RUN(test_table, "what the modes differ in");
        RUN(test_directories, "a session's directories are errandd's and open to the payload's group");
        RUN(test_system, "system mode has its places, and is not root's");
        RUN(test_user, "user mode has its account's places");
        RUN(test_ports, "the port of a session that was found again is taken");
        (void) snprintf(command, sizeof(command), "rm -rf %s", base);
        (void) !system(command);
        return TEST_END();
}
