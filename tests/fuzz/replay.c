/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a fuzzer's entry over a corpus: fuzz-NAME DIRECTORY|FILE… Every ordinary test run replays what fuzzing once found. To
 * look for more: clang -fsanitize=fuzzer,address with the same source and without this file. */

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned count;

static int replay_file(const char *path, const char *name) {
        FILE *f = fopen(path, "re");
        if (!f)
                return -1;
        size_t room = 1 << 20, size;
        uint8_t *data = malloc(room);
        if (!data) {
                fclose(f);
                return -1;
        }
        size = fread(data, 1, room, f);
        fclose(f);
        /* An exact copy, so that a sanitizer sees a read beyond the end. */
        uint8_t *exact = malloc(size ? size : 1);
        if (exact) {
                memcpy(exact, data, size);
                (void) LLVMFuzzerTestOneInput(exact, size);
        }
        free(exact);
        free(data);
        if (!exact)
                return -1;
        printf("ok %u - %s\n", ++count, name);
        fflush(stdout);
        return 0;
}

static int replay(const char *path) {
        struct stat st;
        struct dirent **entries;

        if (stat(path, &st) < 0)
                return -1;
        if (!S_ISDIR(st.st_mode))
                return replay_file(path, path);

        int n = scandir(path, &entries, NULL, alphasort), r = n < 0 ? -1 : 0;
        for (int i = 0; i < n; i++) {
                char file[PATH_MAX];
                if (entries[i]->d_name[0] != '.' && r == 0) {
                        (void) snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
                        r = replay_file(file, entries[i]->d_name);
                }
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
        return r;
}

int main(int argc, char **argv) {
        for (int i = 1; i < argc; i++)
                if (replay(argv[i]) < 0) {
                        printf("Bail out! %s cannot be read\n", argv[i]);
                        return 1;
                }
        printf("1..%u\n", count);
        return count > 0 ? 0 : 1;
}
