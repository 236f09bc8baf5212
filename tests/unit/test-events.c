/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "shared/message.h"
#include "shim/report.h"
#include "test.h"

static int append_to(int fd) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

/* The lines with their times replaced by T; each must be JSON. */
static char *lines(int fd) {
        char *text = NULL, *save = NULL, *all = strdup("");
        size_t size;

        CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
        CHECK_INT(read_fd_full(fd, 1 << 20, &text, &size), 0);
        CHECK(size > 0 && text[size - 1] == '\n');
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                g_autoptr(JsonParser) parser = json_parser_new();
                char *time = strstr(line, "\"time\":"), *longer = NULL;
                CHECK(json_parser_load_from_data(parser, line, -1, NULL) && time);
                time += 7;
                CHECK(asprintf(&longer, "%s%.*sT%s\n", all, (int) (time - line), line, time + strspn(time, "0123456789")) > 0);
                free(all);
                all = longer;
        }
        free(text);
        return all;
}

static void test_lines(void) {
        _cleanup_close_ int fd = memfd_create("events", MFD_CLOEXEC);
        _cleanup_(events_freep) Events *e = NULL;
        char *gaps[] = {(char *) "sysfs", NULL}, *enforced[] = {(char *) "seccomp", NULL};

        CHECK_INT(events_new(append_to(fd), &e), 0);
        events_started(e, &(Started){.pid = 42, .gaps = gaps, .landlock = 7, .isolated = true, .brokered = true});
        events_log(e, "a \"line\"\n\x1b[0m\xff");
        CHECK_INT(events_exited(e, &(ExitStatus){.reason = EXIT_REASON_SIGNAL, .status = 143, .survivors = 2, .enforced = enforced}), 0);
        CHECK_INT(events_exited(e, &(ExitStatus){.reason = EXIT_REASON_SETUP, .status = 125, .text = (char *) "why"}), 0);
        _cleanup_free_ char *text = lines(fd);
        CHECK_STR(text,
                  "{\"event\":\"started\",\"time\":T,\"pid\":42,\"gaps\":[\"sysfs\"],\"landlock\":7,\"isolated\":true,\"enforced\":[\"own root\","
                  "\"namespaces\",\"landlock ABI 7\",\"seccomp\",\"egress broker\"]}\n"
                  "{\"event\":\"log\",\"time\":T,\"text\":\"a \\\"line\\\"\\u000a\\u001b[0m\xef\xbf\xbd\"}\n"
                  "{\"event\":\"exited\",\"time\":T,\"reason\":\"signal\",\"status\":143,\"text\":null,\"survivors\":2,\"enforced\":[\"seccomp\"]}\n"
                  "{\"event\":\"exited\",\"time\":T,\"reason\":\"setup\",\"status\":125,\"text\":\"why\",\"survivors\":0,\"enforced\":[]}\n");
}

static void test_closing(void) {
        static const struct {
                const char *line;
                int result;
                ExitReason reason;
                unsigned status;
        } table[] = {
                {"{\"enforced\":[\"seccomp\"],\"not_enforced\":[{\"name\":\"sysfs\",\"text\":\"x\"}],\"status\":3,\"survivors\":1}", 1, EXIT_REASON_EXITED, 3},
                {"{\"enforced\":[],\"not_enforced\":[],\"status\":143,\"signal\":15,\"survivors\":0}", 1, EXIT_REASON_SIGNAL, 143},
                {"{\"enforced\":[],\"not_enforced\":[],\"status\":137,\"killed\":true,\"survivors\":0}", 1, EXIT_REASON_KILLED, 137},
                {"{\"enforced\":[],\"status\":143}", 0, 0, 0},
                {"{\"enforced\":[],\"status\":-1,\"survivors\":0}", 0, 0, 0},
                {"{\"enforced\":[],\"status\":256,\"survivors\":0}", 0, 0, 0},
                {"{\"enforced\":{},\"status\":0,\"survivors\":0}", 0, 0, 0},
                {"{\"enforced\":[],\"status\":0,\"survivors\":0,\"signal\":\"x\"}", 0, 0, 0},
                {"{\"enforced\":[],\"status\":0,\"survivors\":0", 0, 0, 0},
                {"{} {}", 0, 0, 0},
                {"bailey: enforced: seccomp", 0, 0, 0},
                {"", 0, 0, 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                ExitStatus s = {};
                CHECK_INT(report_parse_closing(table[i].line, strlen(table[i].line), &s), table[i].result);
                CHECK_INT(s.reason, table[i].reason);
                CHECK_INT(s.status, table[i].status);
                exit_status_done(&s);
        }
}

static void test_torn(void) {
        _cleanup_close_ int full = memfd_create("full", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd = memfd_create("events", MFD_CLOEXEC);
        _cleanup_(events_freep) Events *e = NULL;

        CHECK_INT(fcntl(full, F_ADD_SEALS, F_SEAL_GROW), 0);
        int taken = append_to(full);
        CHECK_INT(events_new(taken, &e), 0);
        events_log(e, "lost");
        CHECK(events_exited(e, &(ExitStatus){.reason = EXIT_REASON_EXITED}) < 0);
        /* Room again: another file in its place. */
        _cleanup_close_ int other = append_to(fd);
        CHECK(dup2(other, taken) >= 0);
        CHECK_INT(events_exited(e, &(ExitStatus){.reason = EXIT_REASON_EXITED, .status = 1}), 0);
        _cleanup_free_ char *text = lines(fd);
        CHECK(strstr(text, "\"status\":1"));
}

static void write_text(const char *path, const char *text) {
        CHECK_INT(write_file_once(path, text), 0);
}

/* A real full disk: a small tmpfs in a mount namespace, as whoever runs this. */
static void full_disk(void) {
        char uid_map[64], gid_map[64], block[4096] = "";
        int room, ends = -EBADF;
        Events *e = NULL;

        (void) snprintf(uid_map, sizeof(uid_map), "0 %u 1", getuid());
        (void) snprintf(gid_map, sizeof(gid_map), "0 %u 1", getgid());
        CHECK_INT(unshare(CLONE_NEWUSER | CLONE_NEWNS), 0);
        write_text("/proc/self/setgroups", "deny");
        write_text("/proc/self/uid_map", uid_map);
        write_text("/proc/self/gid_map", gid_map);
        CHECK_INT(mount("errand", "/tmp", "tmpfs", 0, "size=64k"), 0);
        ends = open("/tmp/events", O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        CHECK(ends >= 0);
        CHECK_INT(events_new(dup(ends), &e), 0);
        events_started(e, &(Started){.pid = 42});

        room = open("/tmp/fill", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        while (write(room, block, sizeof(block)) > 0)
                ;
        CHECK_INT(errno, ENOSPC);
        for (int i = 0; i < 1000; i++) /* they must not take the room of the last line */
                events_log(e, "one of many lines that bailey writes while the disk is full");
        CHECK_INT(events_exited(e, &(ExitStatus){.reason = EXIT_REASON_EXITED, .status = 7}), 0);
        /* And nobody begins what could not be told of. */
        Events *none = NULL;
        CHECK_INT(events_new(open("/tmp/other", O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600), &none), -ENOSPC);
        char *text = lines(ends);
        const char *last = strstr(text, "\"event\":\"exited\"");
        CHECK(last && strstr(last, "\"status\":7") && endswith(text, "}\n"));
}

static void test_full_disk(void) {
        int status;

        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                if (setjmp(test_jump) == 0) {
                        full_disk();
                        _exit(0);
                }
                fflush(stdout);
                _exit(1);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(status, 0);
}

static void test_names(void) {
        CHECK_STR(exit_reason_to_string(EXIT_REASON_KILLED), "killed");
        CHECK(!exit_reason_to_string(_EXIT_REASON_MAX) && !exit_reason_to_string(_EXIT_REASON_INVALID));
}

int main(void) {
        RUN(test_lines, "events are lines of JSON, whatever they say");
        RUN(test_closing, "C206: bailey's closing line, and what is none");
        RUN(test_torn, "C189: events that cannot be written are told, and go on when they can");
        RUN(test_full_disk, "C189: the last line has room on a disk that is full");
        RUN(test_names, "the names of reasons");
        return TEST_END();
}
