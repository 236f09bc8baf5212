/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "shared/message.h"
#include "test.h"

static void test_refused(void) {
        static const char *const bad[] = {
                "",
                "x",
                "[]",
                "{}",
                "{\"v\":1}",
                "{\"type\":\"x\"}",
                "{\"v\":2,\"type\":\"x\"}",
                "{\"v\":\"1\",\"type\":\"x\"}",
                "{\"v\":1,\"type\":7}",
                "{\"v\":1,\"type\":\"x\"",
                "var a = {\"v\":1,\"type\":\"x\"}",
                "{\"v\":1,\"type\":\"\xff\"}",
                "{\"v\":1,\"type\":\"x\",\"fds\":[\"a\"]}",
                "{\"v\":1,\"type\":\"x\",\"fds\":\"a\"}",
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                Message *m = NULL;
                _cleanup_free_ char *problem = NULL;
                CHECK_INT(message_parse(bad[i], strlen(bad[i]), NULL, 0, &m, &problem), -EBADMSG);
                CHECK(!m && problem && *problem);
        }
}

static void test_depth(void) {
        _cleanup_free_ char *text = malloc(MESSAGE_SIZE_MAX);
        Message *m = NULL;

        memset(text, '[', MESSAGE_SIZE_MAX);
        memcpy(text, "{\"a\":", 5);
        CHECK_INT(message_parse(text, MESSAGE_SIZE_MAX, NULL, 0, &m, NULL), -EBADMSG);
}

static void test_fds_closed(void) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        Message *m = NULL;

        CHECK_INT(message_parse("{}", 2, &fd, 1, &m, NULL), -EBADMSG);
        CHECK_INT(fcntl(fd, F_GETFD), -1);

        int two[2] = {open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_RDONLY | O_CLOEXEC)};
        static const char twice[] = "{\"v\":1,\"type\":\"x\",\"fds\":[\"a\",\"a\"]}";
        CHECK_INT(message_parse(twice, strlen(twice), two, 2, &m, NULL), -EBADMSG);
        CHECK_INT(fcntl(two[0], F_GETFD), -1);
}

static void test_round_trip(void) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_strv_free_ char **list = NULL;
        const char *text;
        uint64_t number;
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        CHECK_INT(message_receive(pair[1], &m, NULL), -EAGAIN);
        message_open(&w, "setup");
        json_add_string(&w, "text", "h\xc3\xa9llo");
        json_add_u64(&w, "number", 7);
        json_open_array(&w, "fds");
        json_add_string(&w, NULL, "keys");
        json_close_array(&w);
        CHECK_INT(message_send(pair[0], &w, (int[]){pair[0]}, 1), 0);
        CHECK_INT(message_receive(pair[1], &m, NULL), 0);
        CHECK_STR(message_type(m), "setup");
        CHECK_INT(json_get_string(message_object(m), "text", &text), 0);
        CHECK_STR(text, "h\xc3\xa9llo");
        CHECK_INT(json_get_u64(message_object(m), "number", 6, &number), -EINVAL);
        CHECK_INT(json_get_u64(message_object(m), "number", 7, &number), 0);
        CHECK_INT(json_get_u64(message_object(m), "text", 7, &number), -EINVAL);
        CHECK_INT(json_get_u64(message_object(m), "absent", 7, &number), -ENOENT);
        CHECK_INT(json_get_strv(message_object(m), "fds", &list), 0);
        CHECK_INT(strv_length(list), 1);
        int fd = message_take_fd(m, "keys");
        CHECK(fd >= 0);
        CHECK_INT(message_take_fd(m, "keys"), -ENOENT);
        close(fd);
        close(pair[0]);
        m = message_free(m);
        CHECK_INT(message_receive(pair[1], &m, NULL), -ECONNRESET);
        close(pair[1]);
}

int main(void) {
        RUN(test_refused, "what is not a message of this version is refused with a sentence");
        RUN(test_depth, "deep nesting does not reach the JSON library's recursion");
        RUN(test_fds_closed, "a refused message leaves no fd open");
        RUN(test_round_trip, "a message and its fds arrive");
        return TEST_END();
}
