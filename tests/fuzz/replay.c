/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

/* Feeds the files of the directories (or the files) that are named to the fuzzer, in the order of their names, and the empty input.
 * TAP: one line an input; a failure ends the program, and the line before says with what. */

static unsigned count;
static char current[4096] = "the empty input";

static void say(const char *text) {
        (void) !write(STDOUT_FILENO, text, strlen(text));
}

static void on_abort(int sig) {
        say("not ok - ");
        say(current);
        say("\n");
        signal(sig, SIG_DFL);
        raise(sig);
}

static void feed(const char *name, const uint8_t *data, size_t size) {
        (void) snprintf(current, sizeof(current), "%s", name);
        LLVMFuzzerTestOneInput(data, size);
        printf("ok %u - %s\n", ++count, name);
        fflush(stdout);
}

static int feed_file(const char *path, const char *name) {
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &st) < 0) {
                perror(path);
                return -1;
        }
        /* Exactly as large as the file, so that a sanitizer sees a read beyond it. */
        uint8_t *data = malloc(st.st_size > 0 ? (size_t) st.st_size : 1);
        if (!data || read(fd, data, (size_t) st.st_size) != st.st_size) {
                perror(path);
                close(fd);
                free(data);
                return -1;
        }
        close(fd);
        feed(name, data, (size_t) st.st_size);
        free(data);
        return 0;
}

static int visible(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

static int feed_path(const char *path) {
        struct dirent **entries;
        struct stat st;
        int r = 0;

        if (stat(path, &st) < 0) {
                perror(path);
                return -1;
        }
        if (!S_ISDIR(st.st_mode))
                return feed_file(path, path);
        int n = scandir(path, &entries, visible, alphasort);
        if (n <= 0) {
                fprintf(stderr, "%s: no input there\n", path);
                return -1;
        }
        for (int i = 0; i < n; i++) {
                char file[4096];
                (void) snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
                if (feed_file(file, entries[i]->d_name) < 0)
                        r = -1;
                free(entries[i]);
        }
        free(entries);
        return r;
}

int main(int argc, char **argv) {
        int r = 0;

        signal(SIGABRT, on_abort);
        feed("the empty input", (const uint8_t *) "", 0);
        for (int i = 1; i < argc; i++)
                if (feed_path(argv[i]) < 0)
                        r = 1;
        printf("1..%u\n", count);
        return r;
}
