/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/json-writer.h"
#include "basic/parse.h"
#include "basic/path.h"
#include "basic/secret.h"
#include "basic/sha256.h"
#include "basic/text.h"
#include "test.h"

static void test_path_collapse(void) {
        static const struct {
                const char *in, *out;
        } table[] = {
                {"/", "/"},         {"//", "/"},          {"/a//b/", "/a/b"}, {"/a/./b", "/a/b"},   {"/a/../b", "/b"},
                {"/../..", "/"},    {"/a/b/../..", "/"},  {"/a/...", "/a/..."}, {"/a/..b/.c", "/a/..b/.c"},
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *out = NULL;
                CHECK_INT(path_collapse(table[i].in, &out), 0);
                CHECK_STR(out, table[i].out);
        }
        char *out = NULL;
        CHECK_INT(path_collapse("a", &out), -EINVAL);
        CHECK(!out);
}

static void test_path_from_working_directory(void) {
        static const struct {
                const char *here, *in, *out;
        } table[] = {
                {"/usr/bin", "/usr/bin", "."}, {"/usr/bin", "/usr/bin/env", "env"}, {"/usr", "/usr/bin/env", "bin/env"},
                {"/usr/bin", "/usr", "/usr"},  {"/usr/bin", "/usr/binary", "/usr/binary"}, {"/", "/usr/bin", "usr/bin"}, {"/", "/", "."},
                {"/usr/bin", "env", "env"},
        };
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                CHECK_INT(chdir(table[i].here), 0);
                CHECK_STR(path_from_working_directory(table[i].in), table[i].out);
        }
}

static void test_path_make_absolute(void) {
        static const char *const table[][2] = {{"/a/../b", "/b"}, {"env", "/usr/bin/env"}, {"../lib/", "/usr/lib"}, {".", "/usr/bin"}, {"", "/usr/bin"}};
        _cleanup_close_ int before = open(".", O_PATH | O_CLOEXEC);

        CHECK_INT(chdir("/usr/bin"), 0);
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *out = NULL;
                CHECK_INT(path_make_absolute(table[i][0], &out), 0);
                CHECK_STR(out, table[i][1]);
        }
        CHECK_INT(fchdir(before), 0);
}

static void test_path_join(void) {
        _cleanup_free_ char *out = NULL;
        char *none = NULL;

        CHECK_INT(path_join_beneath("/p/q", "./a/../b", &out), 0);
        CHECK_STR(out, "/p/q/b");
        CHECK_INT(path_join_beneath("/p/q", "../x", &none), -EXDEV);
        CHECK_INT(path_join_beneath("/p/q", "a/../../x", &none), -EXDEV);
        CHECK_INT(path_join_beneath("/p/q", "/x", &none), -EINVAL);
        CHECK(path_beneath("/a/b", "/a") && path_beneath("/a", "/a") && path_beneath("/a", "/"));
        CHECK(!path_beneath("/ab", "/a") && !path_beneath("/", "/a"));
        CHECK_INT(path_depth("/"), 0);
        CHECK_INT(path_depth("/a/b"), 2);
}

static void test_parse(void) {
        uint64_t v;
        uint16_t port;
        uint32_t address;

        CHECK_INT(parse_u64("18446744073709551615", UINT64_MAX, &v), 0);
        CHECK_INT(parse_u64("18446744073709551616", UINT64_MAX, &v), -ERANGE);
        static const char *const bad[] = {"", "+1", "-1", " 1", "1 ", "0x1", "1.0"};
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                CHECK_INT(parse_u64(bad[i], UINT64_MAX, &v), -EINVAL);
        CHECK_INT(parse_bytes("4g", &v), 0);
        CHECK_INT(v, 4LL << 30);
        CHECK_INT(parse_bytes("512K", &v), 0);
        CHECK_INT(v, 512 << 10);
        CHECK_INT(parse_bytes("g", &v), -EINVAL);
        CHECK_INT(parse_bytes("99999999t", &v), -ERANGE);
        CHECK_INT(parse_loopback_listen("127.0.0.1:3128", &address, &port), 0);
        CHECK_INT(port, 3128);
        CHECK_INT(parse_loopback_listen("10.0.0.1:3128", &address, &port), -ERANGE);
        CHECK_INT(parse_loopback_listen("127.1:3128", &address, &port), -EINVAL);
        CHECK_INT(parse_loopback_listen("127.0.0.1:0", &address, &port), -ERANGE);
}

static void test_escape(void) {
        _cleanup_free_ char *out = string_escape_control("a\nb\t\x1b[31m\x7f \xc3\xa9 \xff \xc2\x9b \xed\xa0\x80");
        CHECK_STR(out, "a\\nb\\t\\x1b[31m\\x7f \xc3\xa9 \\xff \\xc2\\x9b \\xed\\xa0\\x80");
}

static void test_append(void) {
        _cleanup_free_ char *text = NULL, *joined = NULL, *nothing = NULL;
        char *list[] = {(char *) "a", (char *) "", (char *) "c", NULL};

        CHECK_INT(string_append(&text, "%s", ""), 0);
        CHECK_STR(text, "");
        CHECK_INT(string_append(&text, "%d%s", 12, "x"), 0);
        CHECK_INT(string_append(&text, "%s%s", text, "!"), 0); /* of itself, too */
        CHECK_STR(text, "12x12x!");
        joined = strv_join(list, ", ");
        CHECK_STR(joined, "a, , c");
        nothing = strv_join(NULL, ", ");
        CHECK_STR(nothing, "");
}

static void test_distance(void) {
        CHECK_INT(string_distance("read", "read"), 0);
        CHECK_INT(string_distance("raed", "read"), 2);
        CHECK_INT(string_distance("", "abc"), 3);
}

static void test_json_writer(void) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;

        json_open_object(&w, NULL);
        json_add_string(&w, "a", "q\"\\\n\xff\xc3\xa9");
        json_open_array(&w, "b");
        json_add_u64(&w, NULL, UINT64_MAX);
        json_add_u64(&w, NULL, 0);
        json_add_bool(&w, NULL, true);
        json_add_null(&w, NULL);
        json_open_object(&w, NULL);
        json_close_object(&w);
        json_close_array(&w);
        json_close_object(&w);
        CHECK_INT(json_writer_finish(&w, &text, NULL), 0);
        CHECK_STR(text, "{\"a\":\"q\\\"\\\\\\u000a\xef\xbf\xbd\xc3\xa9\",\"b\":[18446744073709551615,0,true,null,{}]}");
}

static void test_secret(void) {
        _cleanup_(secret_freep) Secret *s = NULL;

        CHECK_INT(secret_mint("errand-session-", 32, &s), 0);
        CHECK_INT(secret_size(s), 15 + 64);
        CHECK(startswith(secret_data(s), "errand-session-"));
        CHECK_INT(strspn(secret_data(s) + 15, "0123456789abcdef"), 64);
        CHECK(secret_equal("ab", 2, "ab", 2) && !secret_equal("ab", 2, "ac", 2) && !secret_equal("ab", 2, "abc", 3));
}

static void test_close_all_except(void) {
        int a = open("/dev/null", O_RDONLY), b = open("/dev/null", O_RDONLY), c = fcntl(a, F_DUPFD, 250);

        CHECK_INT(fd_close_all_except(3, (int[]){c, b}, 2), 0);
        CHECK_INT(fcntl(a, F_GETFD), -1);
        CHECK(fcntl(b, F_GETFD) >= 0 && fcntl(c, F_GETFD) >= 0);
        CHECK_INT(fd_close_all_except(3, NULL, 0), 0);
        CHECK_INT(fcntl(c, F_GETFD), -1);
}

static void test_fds_over_socket(void) {
        int pair[2], got[1];
        char buffer[8];
        size_t n = 0;

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        CHECK_INT(send_fds(pair[0], "hello", 5, (int[]){pair[0], pair[1]}, 2), 5);
        CHECK_INT(recv_fds(pair[1], buffer, sizeof(buffer), got, 1, &n), -EMSGSIZE);
        CHECK_INT(send_fds(pair[0], "0123456789", 10, NULL, 0), 10);
        CHECK_INT(recv_fds(pair[1], buffer, sizeof(buffer), got, 1, &n), -EMSGSIZE);
        CHECK_INT(send_fds(pair[0], "ok", 2, (int[]){pair[0]}, 1), 2);
        CHECK_INT(recv_fds(pair[1], buffer, sizeof(buffer), got, 1, &n), 2);
        CHECK_INT(n, 1);
        CHECK(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
        close(got[0]);
        close(pair[0]);
        close(pair[1]);
}

static void test_memfd(void) {
        _cleanup_close_ int fd = memfd_new_sealed("test", "secret", 6);
        _cleanup_free_ char *text = NULL;
        size_t size;

        CHECK(fd >= 0);
        CHECK_INT(write(fd, "x", 1), -1);
        CHECK_INT(read_fd_full(fd, 5, &text, &size), -EFBIG);
        CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
        CHECK_INT(read_fd_full(fd, 6, &text, &size), 0);
        CHECK_INT(size, 6);
        CHECK_STR(text, "secret");
}

static void test_memfd_read(void) {
        static const int partly[] = {0, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_WRITE | F_SEAL_GROW, F_SEAL_WRITE | F_SEAL_SHRINK};
        _cleanup_close_ int fd = memfd_new_sealed("test", "secret", 6), empty = memfd_new_sealed("test", "", 0);
        _cleanup_free_ char *text = NULL, *none = NULL;
        size_t size;

        CHECK_INT(lseek(fd, 3, SEEK_SET), 3); /* wherever it stands */
        CHECK_INT(memfd_read_sealed(fd, 5, &text, &size), -E2BIG);
        CHECK(!text);
        CHECK_INT(memfd_read_sealed(fd, 6, &text, &size), 0);
        CHECK_INT(size, 6);
        CHECK_STR(text, "secret");
        CHECK_INT(memfd_read_sealed(empty, 0, &none, &size), 0);
        CHECK_INT(size, 0);
        CHECK_STR(none, "");
        CHECK_INT(memfd_read_sealed(-EBADF, 6, &text, &size), -EINVAL);
        for (size_t i = 0; i < ELEMENTSOF(partly); i++) {
                _cleanup_close_ int open_one = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                CHECK(open_one >= 0 && fcntl(open_one, F_ADD_SEALS, partly[i]) == 0);
                CHECK(!memfd_is_sealed(open_one));
                CHECK_INT(memfd_read_sealed(open_one, 6, &text, &size), -EINVAL);
        }
}

static const char *digest_of(const void *data, size_t size) {
        static char text[2 * SHA256_SIZE + 1];
        uint8_t digest[SHA256_SIZE];

        sha256(data, size, digest);
        sha256_to_string(digest, text);
        return text;
}

/* The examples of FIPS 180-4, then lengths about the ends of blocks. */
static void test_sha256(void) {
        static const char *const examples[][2] = {
                {"abc",
                 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
                {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
        };
        static const struct {
                size_t size;
                const char *digest;
        } repeated[] = {
                {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                {1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
                {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
                {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
                {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
                {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
                {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
                {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
                {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
                {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
                {1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
        };
        _cleanup_free_ char *many = malloc(1000000);
        uint8_t digest[SHA256_SIZE];

        CHECK(many);
        memset(many, 'a', 1000000);
        for (size_t i = 0; i < ELEMENTSOF(examples); i++)
                CHECK_STR(digest_of(examples[i][0], strlen(examples[i][0])), examples[i][1]);
        for (size_t i = 0; i < ELEMENTSOF(repeated); i++)
                CHECK_STR(digest_of(many, repeated[i].size), repeated[i].digest);
        CHECK_INT(sha256_from_string(examples[0][1], 64, digest), 0);
        CHECK_INT(digest[0], 0xba);
        CHECK_INT(digest[31], 0xad);
        CHECK_INT(sha256_from_string(examples[0][1], 63, digest), -EINVAL);
        CHECK_INT(sha256_from_string("BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 64, digest), -EINVAL);
}

int main(void) {
        RUN(test_path_collapse, "paths collapse by text");
        RUN(test_path_from_working_directory, "paths from the working directory on");
        RUN(test_path_make_absolute, "a path as it is seen from the root");
        RUN(test_path_join, "a relative path cannot leave its base");
        RUN(test_parse, "numbers, sizes, ports and listen addresses are strict");
        RUN(test_escape, "control characters from outside are shown, not sent to a terminal");
        RUN(test_append, "a text grows, and a list becomes one");
        RUN(test_distance, "edit distance");
        RUN(test_json_writer, "the JSON writer gives valid JSON for any bytes");
        RUN(test_secret, "S044: a minted secret reads errand-session- and 64 hex digits");
        RUN(test_close_all_except, "C056: every fd but the named ones is closed");
        RUN(test_fds_over_socket, "a message or fd list that was cut leaves no fd open");
        RUN(test_memfd, "a sealed memfd cannot change");
        RUN(test_memfd_read, "a memfd that can change is not read");
        RUN(test_sha256, "C104: SHA-256 gives what the standard says");
        return TEST_END();
}
