/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basic/text.h"
#include "broker/state-file.h"
#include "test.h"

#define SLOT(i) (4096 + (off_t) (i) * (4096 + (off_t) STATE_TEXT_MAX)) /* as state-file.c lays it out */

/* What another process finds. */
static char *found(int fd, int *ret_error) {
        _cleanup_(state_file_freep) StateFile *f = NULL;
        const char *problem = NULL;
        char *text = NULL;
        size_t size = 0;

        *ret_error = state_file_open(dup(fd), &f, &text, &size, &problem);
        CHECK((*ret_error == 0) == (text != NULL));
        CHECK(*ret_error != -EBADMSG || problem);
        if (text)
                CHECK_INT(strlen(text), size);
        return text;
}

static void spoil(int fd, unsigned slot) {
        CHECK_INT(pwrite(fd, "\xff", 1, SLOT(slot) + 16), 1);
}

static void test_newest(void) {
        _cleanup_(state_file_freep) StateFile *f = NULL;
        int r;

        CHECK_INT(state_file_new(&f), 0);
        int fd = state_file_fd(f);
        _cleanup_free_ char *none = found(fd, &r);
        CHECK(!none);
        CHECK_INT(r, -EBADMSG);
        static const char *const texts[] = {"one", "a second, longer text", "3", "", "five"};
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                CHECK_INT(state_file_write(f, texts[i], strlen(texts[i])), 0);
                _cleanup_free_ char *text = found(fd, &r);
                CHECK_STR(text, texts[i]);
        }
}

static void test_torn(void) {
        _cleanup_(state_file_freep) StateFile *f = NULL;
        int r;

        CHECK_INT(state_file_new(&f), 0);
        int fd = state_file_fd(f);
        CHECK_INT(state_file_write(f, "first", 5), 0);  /* into slot 0 */
        CHECK_INT(state_file_write(f, "second", 6), 0); /* into slot 1 */
        spoil(fd, 1);
        _cleanup_free_ char *older = found(fd, &r);
        CHECK_STR(older, "first");
        spoil(fd, 0);
        _cleanup_free_ char *none = found(fd, &r);
        CHECK_INT(r, -EBADMSG);
        CHECK(!none);
}

/* Another process goes on where the first was, and does not write over what is newest. */
static void test_goes_on(void) {
        _cleanup_(state_file_freep) StateFile *f = NULL, *g = NULL;
        _cleanup_free_ char *text = NULL;
        const char *problem;
        size_t size;
        int r;

        CHECK_INT(state_file_new(&f), 0);
        CHECK_INT(state_file_write(f, "first", 5), 0);
        CHECK_INT(state_file_open(dup(state_file_fd(f)), &g, &text, &size, &problem), 0);
        CHECK_INT(state_file_write(g, "second", 6), 0);
        spoil(state_file_fd(f), 1);
        _cleanup_free_ char *older = found(state_file_fd(f), &r);
        CHECK_STR(older, "first");
}

static void test_sizes(void) {
        _cleanup_(state_file_freep) StateFile *f = NULL;
        _cleanup_free_ char *large = malloc(STATE_TEXT_MAX + 1);
        int r;

        CHECK(large);
        memset(large, 'x', STATE_TEXT_MAX + 1);
        CHECK_INT(state_file_new(&f), 0);
        CHECK_INT(state_file_write(f, "kept", 4), 0);
        CHECK_INT(state_file_write(f, large, STATE_TEXT_MAX + 1), -E2BIG);
        _cleanup_free_ char *text = found(state_file_fd(f), &r);
        CHECK_STR(text, "kept");
        CHECK_INT(state_file_write(f, large, STATE_TEXT_MAX), 0);
        CHECK_INT(state_file_write(f, large, STATE_TEXT_MAX), 0); /* both places: neither reaches into the other */
        _cleanup_free_ char *whole = found(state_file_fd(f), &r);
        CHECK_INT(strlen(whole), STATE_TEXT_MAX);
        CHECK_INT(ftruncate(state_file_fd(f), 4096), -1);
}

static void test_foreign(void) {
        int r;

        int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        CHECK(fd >= 0);
        CHECK_INT(ftruncate(fd, SLOT(2)), 0);
        _cleanup_free_ char *unsealed = found(fd, &r);
        CHECK(!unsealed);
        CHECK_INT(r, -EBADMSG);
        CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
        _cleanup_free_ char *empty = found(fd, &r);
        CHECK(!empty);
        CHECK_INT(r, -EBADMSG);
        close(fd);
}

int main(void) {
        RUN(test_newest, "the newest text is found");
        RUN(test_torn, "of a text that is not whole the one before is found, and of two nothing");
        RUN(test_goes_on, "another process writes over the older text");
        RUN(test_sizes, "a text that is too long changes nothing; two of the longest do not touch");
        RUN(test_foreign, "a file that is not of our making is refused");
        return TEST_END();
}
