/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "shared/cgroup.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define FILE_SIZE_MAX (64U * 1024U) /* a path has 4 KiB; there is one line for each old hierarchy */

int cgroup_parse(const char *text, char **ret) {
        /* The line of the unified hierarchy has number 0 and names no controllers; see cgroups(7). */
        for (const char *line = text; *line;) {
                size_t size = strcspn(line, "\n");
                const char *path = startswith(line, "0::");
                if (path && size > STRLEN("0::") && path[0] == '/') {
                        char *copy = strndup(path, size - STRLEN("0::"));
                        if (!copy)
                                return -ENOMEM;
                        if (endswith(copy, " (deleted)")) {
                                free(copy);
                                return -ENODATA;
                        }
                        *ret = copy;
                        return 0;
                }
                line += size + (line[size] == '\n');
        }
        return -ENODATA;
}

int cgroup_of_process(pid_t pid, char **ret) {
        _cleanup_free_ char *text = NULL;
        char file[64];

        (void) snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
        int r = read_file_full(file, FILE_SIZE_MAX, &text, NULL);
        return r < 0 ? r : cgroup_parse(text, ret);
}

bool cgroup_is_unit(const char *path, const char *unit) {
        const char *slash = strrchr(path, '/');

        return slash && streq(slash + 1, unit);
}

int cgroup_directory(const char *path, char **ret) {
        char *directory;

        if (asprintf(&directory, CGROUP_ROOT "%s", path) < 0)
                return -ENOMEM;
        *ret = directory;
        return 0;
}

int cgroup_open(const char *path) {
        _cleanup_free_ char *directory = NULL;
        struct statfs st;

        int r = cgroup_directory(path, &directory);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstatfs(fd, &st) < 0)
                return -errno;
        return (unsigned long) st.f_type == CGROUP2_SUPER_MAGIC ? TAKE_FD(fd) : -ENODEV;
}

int cgroup_kill(int group, const char *child) {
        char file[64];

        if (group < 0)
                return -ENOENT;
        if (snprintf(file, sizeof(file), "%s/cgroup.kill", child) >= (int) sizeof(file))
                return -ENAMETOOLONG;
        _cleanup_close_ int fd = openat(group, file, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return write(fd, "1", 1) < 0 ? -errno : 0;
}

int cgroup_controllers(int group, char ***ret) {
        _cleanup_strv_free_ char **list = NULL;
        _cleanup_free_ char *text = NULL;
        char *rest;

        _cleanup_close_ int fd = openat(group, "cgroup.controllers", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = read_fd_full(fd, FILE_SIZE_MAX, &text, NULL);
        for (char *word = r < 0 ? NULL : strtok_r(text, " \n", &rest); word && r >= 0; word = strtok_r(NULL, " \n", &rest))
                r = strv_extend(&list, word);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(list);
        return 0;
}

bool cgroup_limit_holds(int group, const char *file, uint64_t most) {
        char text[64];
        uint64_t value, period = 1000000;

        _cleanup_close_ int fd = openat(group, file, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return false;
        text[n] = 0;
        /* cpu.max has two numbers, the quota and its period; the others one. All may say "max". */
        size_t first = strcspn(text, " \n");
        if (parse_u64_n(text, first, UINT64_MAX, &value) < 0)
                return false;
        if (text[first] == ' ' && parse_u64_n(text + first + 1, strcspn(text + first + 1, "\n"), UINT32_MAX, &period) < 0)
                return false;
        return period > 0 && (unsigned __int128) value * 1000000 <= (unsigned __int128) most * period;
}

int cgroup_parse_oom_kills(const char *text, uint64_t *ret) {
        for (const char *line = text; *line;) {
                size_t size = strcspn(line, "\n");
                const char *value = startswith(line, "oom_kill ");
                if (value)
                        return parse_u64_n(value, size - STRLEN("oom_kill "), UINT64_MAX, ret) < 0 ? -ENODATA : 0;
                line += size + (line[size] == '\n');
        }
        return -ENODATA;
}

int cgroup_read_oom_kills(int events, uint64_t *ret) {
        char text[1024];

        ssize_t n = pread(events, text, sizeof(text) - 1, 0);
        if (n < 0)
                return -errno;
        text[n] = 0;
        return cgroup_parse_oom_kills(text, ret);
}
