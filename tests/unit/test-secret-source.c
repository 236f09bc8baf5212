/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/secret-source.h"
#include "test.h"

static char dir[64];

static char *put(const char *name, const char *text, size_t size, mode_t mode) {
        char *path;

        CHECK(asprintf(&path, "%s/%s", dir, name) > 0);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        CHECK_INT(write_all(fd, text, size), 0);
        CHECK_INT(fchmod(fd, mode), 0);
        return path;
}

static void resolves(const SecretSource *s, SecretForm form, const char *credentials, const char *expected) {
        _cleanup_(secret_freep) Secret *secret = NULL;
        char *problem = NULL;

        if (secret_source_resolve(s, form, credentials, &secret, &problem) < 0)
                test_fail(__FILE__, __LINE__, "%s", problem ?: "?");
        CHECK_STR(secret_data(secret), expected);
}

static void refused(const SecretSource *s, SecretForm form, const char *credentials, const char *expected) {
        Secret *secret = NULL;
        char *problem = NULL;

        CHECK_INT(secret_source_resolve(s, form, credentials, &secret, &problem), -EBADMSG);
        if (!strstr(problem, expected) || strstr(problem, "MARKER"))
                test_fail(__FILE__, __LINE__, "\"%s\", not \"%s\"", problem, expected);
        free(problem);
}

static void test_file(void) {
        static const struct {
                const char *text;
                size_t size;
                mode_t mode;
                const char *problem;
        } rows[] = {
                {"MARKER-key\n", 11, 0600, NULL},
                {"MARKER-key", 10, 0640, NULL},
                {"MARKER-key", 10, 0644, "is open to every account (mode 0644)"},
                {"MARKER-key", 10, 0602, "is open to every account (mode 0602)"},
                {"", 0, 0600, "is empty"},
                {"\n", 1, 0600, "is empty"},
                {"MARKER\nkey\n", 11, 0600, "more than one line"},
                {"MARKER\r\n", 8, 0600, "more than one line"},
                {"MARKER key", 10, 0600, "a space"},
                {"MARKER\0key", 10, 0600, "printable ASCII"},
                {"MARKER\xc3\xa9", 8, 0600, "printable ASCII"},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *path = put("key", rows[i].text, rows[i].size, rows[i].mode);
                SecretSource s = {.kind = SECRET_SOURCE_FILE, .name = path};
                _cleanup_free_ char *problem = NULL;
                bool fine = !rows[i].problem || strstr(rows[i].problem, "open to every account");
                CHECK_INT(secret_file_check("the key", path, SECRET_ONE_LINE, &problem), fine ? 0 : -EBADMSG);
                CHECK(fine == !problem && (fine || (startswith(problem, "the key ") && strstr(problem, rows[i].problem))));
                if (rows[i].problem)
                        refused(&s, SECRET_ONE_LINE, NULL, rows[i].problem);
                else
                        resolves(&s, SECRET_ONE_LINE, NULL, "MARKER-key");
                CHECK_INT(unlink(path), 0);
        }
}

static void test_text(void) {
        static const char pem[] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        _cleanup_free_ char *path = put("pem", pem, strlen(pem), 0600);
        SecretSource s = {.kind = SECRET_SOURCE_FILE, .name = path};

        resolves(&s, SECRET_TEXT, NULL, pem);
        refused(&s, SECRET_ONE_LINE, NULL, "more than one line");
        CHECK_INT(unlink(path), 0);
}

static void test_not_a_file(void) {
        _cleanup_free_ char *fifo = NULL, *large = NULL, *big = calloc(1, 65538);
        SecretSource s = {.kind = SECRET_SOURCE_FILE, .name = dir};

        refused(&s, SECRET_ONE_LINE, NULL, "is not a regular file");
        CHECK(asprintf(&fifo, "%s/fifo", dir) > 0);
        CHECK_INT(mkfifo(fifo, 0600), 0);
        s.name = fifo;
        refused(&s, SECRET_ONE_LINE, NULL, "is not a regular file"); /* and nobody waits */
        CHECK_INT(unlink(fifo), 0);
        refused(&s, SECRET_ONE_LINE, NULL, "cannot be opened: No such file");
        CHECK(big);
        memset(big, 'a', 65537);
        large = put("large", big, 65537, 0600);
        s.name = large;
        refused(&s, SECRET_ONE_LINE, NULL, "larger than 64 KiB");
        CHECK_INT(unlink(large), 0);
        s = (SecretSource){};
        Secret *secret;
        char *problem;
        CHECK_INT(secret_source_resolve(&s, SECRET_ONE_LINE, NULL, &secret, &problem), -ENOENT);
}

static void test_credential(void) {
        static const char *const bad[] = {"", ".", "..", ".x", "a/b", "../key", "a b", "a\n", "\xc3\xa9"};
        _cleanup_free_ char *path = put("keys_anthropic", "MARKER-key", 10, 0400);
        SecretSource s = {.kind = SECRET_SOURCE_SYSTEMD_CREDENTIAL, .name = (char *) "keys_anthropic"};

        resolves(&s, SECRET_ONE_LINE, dir, "MARKER-key");
        refused(&s, SECRET_ONE_LINE, NULL, "systemd gave no credentials");
        refused(&s, SECRET_ONE_LINE, "relative", "systemd gave no credentials");
        s.name = (char *) "other";
        refused(&s, SECRET_ONE_LINE, dir, "the systemd credential other was not given to errandd when it started");
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                CHECK(!systemd_credential_name_valid(bad[i]));
        CHECK(systemd_credential_name_valid("keys_anthropic-1.x"));
        CHECK_INT(unlink(path), 0);
}

int main(void) {
        strcpy(dir, "/tmp/errand-test-secret.XXXXXX");
        if (!mkdtemp(dir))
                return 1;
        RUN(test_file, "C190 C171: a key file is one printable line, closed to other accounts");
        RUN(test_text, "a private key may have lines");
        RUN(test_not_a_file, "directories, fifos and large files are refused without waiting");
        RUN(test_credential, "a systemd credential is read from its directory alone");
        if (rmdir(dir) < 0)
                return 1;
        return TEST_END();
}
