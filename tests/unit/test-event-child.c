/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "basic/macro.h"
#include "shared/event-child.h"
#include "test.h"

static int on_end(sd_event_source *source, const siginfo_t *info, void *userdata) {
        siginfo_t *ret = userdata;

        event_child_ended(source);
        *ret = *info;
        return 0;
}

static int on_input(sd_event_source *source, int fd, _unused_ uint32_t revents, void *userdata) {
        const siginfo_t *ended = userdata;
        char c;

        CHECK_INT(ended->si_pid, 0);
        if (read(fd, &c, 1) == 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

/* Whether the kernel would forget one of the loop's descriptors with its first word. */
static bool has_one_shot(sd_event *event) {
        char path[64], line[256];
        bool found = false;

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", sd_event_get_fd(event));
        FILE *f = fopen(path, "re");
        CHECK(f);
        while (fgets(line, sizeof(line), f)) {
                const char *events = strstr(line, "events:");
                found = found || (events && (strtoul(events + strlen("events:"), NULL, 16) & EPOLLONESHOT) != 0);
        }
        (void) fclose(f);
        return found;
}

static void test_end(void) {
        sd_event_source *end = NULL, *input = NULL;
        sd_event *event = NULL;
        siginfo_t ended = {};
        sigset_t set;
        int pipes[2];

        CHECK_INT(sigemptyset(&set), 0);
        CHECK_INT(sigaddset(&set, SIGCHLD), 0);
        CHECK_INT(sigprocmask(SIG_BLOCK, &set, NULL), 0);
        CHECK_INT(pipe(pipes), 0);
        CHECK(sd_event_new(&event) >= 0);
        pid_t pid = fork();
        if (pid == 0) {
                (void) !write(pipes[1], "words", 5);
                _exit(3);
        }
        CHECK(pid > 0);
        CHECK_INT(close(pipes[1]), 0);
        CHECK(event_add_child_last(event, &end, pid, on_end, &ended) >= 0);
        CHECK(sd_event_add_io(event, &input, pipes[0], EPOLLIN, on_input, &ended) >= 0);
        CHECK(!has_one_shot(event));
        while (ended.si_pid == 0)
                CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        CHECK_INT(ended.si_pid, pid);
        CHECK_INT(ended.si_status, 3);
        CHECK(sd_event_run(event, 0) == 0); /* once, and it is waited for */
        CHECK(kill(pid, 0) < 0);
        sd_event_source_unref(end);
        sd_event_source_unref(input);
        sd_event_unref(event);
        CHECK_INT(close(pipes[0]), 0);
}

int main(void) {
        RUN(test_end, "a child's end comes after what it said, and is not lost beside it");
        return TEST_END();
}
