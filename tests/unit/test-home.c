/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/io.h"
#include "shim/home.h"
#include "test.h"

static char base[] = "/tmp/errand-home-XXXXXX", home[64], path[128];

static const char *below(const char *name) {
        (void) snprintf(path, sizeof(path), "%s/%s", home, name);
        return path;
}

static void test_new(void) {
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t size;

        (void) snprintf(home, sizeof(home), "%s/new", base);
        (void) umask(0);
        home_prepare(home);
        CHECK(stat(home, &st) == 0 && (st.st_mode & 07777) == 0700);
        CHECK(stat(below(".ssh"), &st) == 0 && (st.st_mode & 07777) == 0700);
        CHECK(stat(below(".ssh/config"), &st) == 0 && (st.st_mode & 07777) == 0600);
        CHECK_INT(read_file_full(path, 4096, &text, &size), 0);
        CHECK(strstr(text, "\nHost * !localhost !127.0.0.1 !::1\n    ProxyCommand errand-connect %h %p\n"));
}

static void test_there(void) {
        (void) snprintf(home, sizeof(home), "%s/there", base);
        CHECK_INT(mkdir(home, 0700), 0);
        home_prepare(home);
        CHECK(access(below(".ssh"), F_OK) < 0);
}

/* As a session could leave one in place of its home; nothing is written where it leads. */
static void test_link(void) {
        char target[80];

        (void) snprintf(home, sizeof(home), "%s/link", base);
        (void) snprintf(target, sizeof(target), "%s/elsewhere", base);
        CHECK_INT(symlink(target, home), 0);
        home_prepare(home);
        CHECK(access(target, F_OK) < 0);
        CHECK_INT(mkdir(target, 0700), 0);
        home_prepare(home);
        CHECK(access(below(".ssh"), F_OK) < 0);
}

int main(void) {
        if (!mkdtemp(base))
                return 1;
        RUN(test_new, "C089: a new home has what ssh needs, for nobody else to read or write");
        RUN(test_there, "a home that is there is left as it is");
        RUN(test_link, "C014: a link in place of the home leads nowhere");
        for (const char *const *name = (const char *const[]){"new/.ssh/config", "new/.ssh", "new", "there", "link", "elsewhere", NULL}; *name; name++) {
                (void) snprintf(path, sizeof(path), "%s/%s", base, *name);
                (void) remove(path);
        }
        (void) rmdir(base);
        return TEST_END();
}
