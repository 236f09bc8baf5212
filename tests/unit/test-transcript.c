/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "shim/limits.h"
#include "shim/transcript.h"
#include "test.h"


static SecretList *list_of(const char *data, size_t size) {
        SecretList *l = NULL;
        _cleanup_close_ int fd = memfd_new_sealed("scrub", data, size);

        CHECK(fd >= 0);
        CHECK_INT(secret_list_read(fd, &l), 0);
        return l;
}
#define LIST(text) list_of(text, sizeof(text))

/* A file in memory, to append to and to read. */
static void file_new(int *ret_write, int *ret_read) {
        char path[64];

        int fd = memfd_create("transcript", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        CHECK(fd >= 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        *ret_write = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        *ret_read = fd;
        CHECK(*ret_write >= 0);
}

static char *content(int fd) {
        char *text = NULL;
        size_t size;

        CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
        CHECK_INT(read_fd_full(fd, 1 << 20, &text, &size), 0);
        return text;
}

static const char input[] = "a sk-secret-one b sk-secret-one-more sk-secret-two sk-secret-onsk-secret-one sk-secret-";
static const char expected[] = "a [redacted] b [redacted] [redacted] sk-secret-on[redacted] sk-secret-";

static void test_every_border(void) {
        _cleanup_(secret_list_freep) SecretList *secrets = LIST("sk-secret-one\0sk-secret-two\0short\0sk-secret-one-more");

        for (size_t first = 0; first < sizeof(input); first++)
                for (size_t step = 1; step < 20; step++) {
                        _cleanup_(transcript_freep) Transcript *t = NULL;
                        _cleanup_(transcript_stream_freep) TranscriptStream *s = NULL;
                        _cleanup_close_ int fd = -EBADF;
                        _cleanup_free_ char *text = NULL;
                        int out;

                        file_new(&out, &fd);
                        CHECK_INT(transcript_new(out, TRANSCRIPT_BYTES_MAX, &t), 0);
                        CHECK_INT(transcript_stream_new(t, secrets, &s), 0);
                        transcript_write(s, input, MIN(first, (sizeof(input) - 1)));
                        for (size_t at = first; at < (sizeof(input) - 1); at += step)
                                transcript_write(s, input + at, MIN(step, (sizeof(input) - 1) - at));
                        transcript_finish(s);
                        text = content(fd);
                        CHECK_STR(text, expected);
                }
}

static void test_streams(void) {
        _cleanup_(secret_list_freep) SecretList *secrets = LIST("sk-secret-one");
        _cleanup_(transcript_freep) Transcript *t = NULL;
        _cleanup_(transcript_stream_freep) TranscriptStream *a = NULL, *b = NULL;
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *text = NULL;
        int out;

        file_new(&out, &fd);
        CHECK_INT(transcript_new(out, TRANSCRIPT_BYTES_MAX, &t), 0);
        CHECK_INT(transcript_stream_new(t, secrets, &a), 0);
        CHECK_INT(transcript_stream_new(t, secrets, &b), 0);
        transcript_write(a, "sk-sec", 6);
        transcript_write(b, "between ", 8);
        transcript_write(a, "ret-one\n", 8);
        transcript_write(b, "sk-secret-on", 12);
        transcript_finish(a);
        transcript_finish(b);
        text = content(fd);
        CHECK_STR(text, "between [redacted]\nsk-secret-on");
}

static void test_cap(void) {
        _cleanup_(secret_list_freep) SecretList *secrets = list_of("", 0);
        _cleanup_close_ int fd = -EBADF;
        int out;

        file_new(&out, &fd);
        for (int run = 0; run < 2; run++) { /* a second run finds the first's text and adds nothing to it */
                _cleanup_(transcript_freep) Transcript *t = NULL;
                _cleanup_(transcript_stream_freep) TranscriptStream *s = NULL;
                _cleanup_free_ char *text = NULL;
                CHECK_INT(transcript_new(dup(out), 10, &t), 0);
                CHECK_INT(transcript_stream_new(t, secrets, &s), 0);
                for (int i = 0; i < 5; i++)
                        transcript_write(s, "12345678", 8);
                transcript_finish(s);
                text = content(fd);
                CHECK_STR(text, "1234567812\n[errand: the transcript ends here, it has reached 10 bytes]\n");
        }
        close(out);
}

static void test_full(void) {
        _cleanup_(secret_list_freep) SecretList *secrets = list_of("", 0);
        _cleanup_(transcript_freep) Transcript *t = NULL;
        _cleanup_(transcript_stream_freep) TranscriptStream *s = NULL;
        _cleanup_close_ int full = memfd_create("full", MFD_CLOEXEC | MFD_ALLOW_SEALING), fd = -EBADF;
        _cleanup_free_ char *text = NULL;
        char path[64];
        int out, taken;

        CHECK(full >= 0);
        CHECK_INT(fcntl(full, F_ADD_SEALS, F_SEAL_GROW), 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", full);
        taken = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        CHECK(taken >= 0);
        CHECK_INT(transcript_new(taken, TRANSCRIPT_BYTES_MAX, &t), 0);
        CHECK_INT(transcript_stream_new(t, secrets, &s), 0);
        transcript_write(s, "lost\n", 5);
        transcript_write(s, "lost\n", 5);

        /* Then there is room again: another file in its place. */
        file_new(&out, &fd);
        CHECK(dup2(out, taken) >= 0);
        close(out);
        transcript_write(s, "kept\n", 5);
        text = content(fd);
        CHECK_STR(text, "\n[errand: 10 bytes are missing here, there was no room for them]\nkept\n");
}

static void test_lists_refused(void) {
        SecretList *l = NULL;
        _cleanup_close_ int open_one = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING), cut = memfd_new_sealed("x", "sk-secret", 9);
        _cleanup_close_ int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        _cleanup_free_ char *many = calloc(SECRETS_MAX + 1, 10), *large = calloc(1, SECRETS_BYTES_MAX + 1);

        for (size_t i = 0; i <= SECRETS_MAX; i++)
                (void) snprintf(many + i * 10, 10, "sk%07zu", i);
        _cleanup_close_ int too_many = memfd_new_sealed("x", many, (SECRETS_MAX + 1) * 10), too_large = memfd_new_sealed("x", large, SECRETS_BYTES_MAX + 1);
        CHECK_INT(secret_list_read(open_one, &l), -EINVAL);
        CHECK_INT(secret_list_read(cut, &l), -EINVAL);
        CHECK_INT(secret_list_read(file, &l), -EINVAL);
        CHECK_INT(secret_list_read(too_many, &l), -E2BIG);
        CHECK_INT(secret_list_read(too_large, &l), -E2BIG);
        CHECK(!l);
}

int main(void) {
        RUN(test_every_border, "S217: no secret gets through, wherever the pieces are cut");
        RUN(test_streams, "S217: a secret is found although another stream writes in between");
        RUN(test_cap, "a transcript ends at its cap, with one line that says so");
        RUN(test_full, "C189: what a full disk did not take is told where it is missing");
        RUN(test_lists_refused, "a list of secrets that can change, is cut, or too long, is refused");
        return TEST_END();
}
