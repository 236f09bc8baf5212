/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "launch/usage.h"

#define STAT_SIZE_MAX 4096U

typedef struct Process {
        pid_t pid, parent;
        uint64_t ticks, pages;
        bool counted;
} Process;

int usage_parse_stat(const char *text, pid_t *ret_pid, pid_t *ret_parent, uint64_t *ret_ticks, uint64_t *ret_pages) {
        /* The name stands in parentheses and may hold any, so the last one counts. */
        const char *end = strrchr(text, ')');
        int pid, parent;
        uint64_t user, system, children_user, children_system, pages;

        /* Fields of proc_pid_stat(5): 1 pid, 4 ppid, 14 utime, 15 stime, 16 cutime, 17 cstime, 24 rss. */
        if (!end || sscanf(text, "%d (", &pid) != 1 ||
            sscanf(end, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                        " %*d %*d %*d %*d %*u %*u %" SCNu64,
                   &parent, &user, &system, &children_user, &children_system, &pages) != 6)
                return -EBADMSG;
        *ret_pid = pid;
        *ret_parent = parent;
        *ret_ticks = user + system + children_user + children_system;
        *ret_pages = pages;
        return 0;
}

static int read_process(int proc, const char *name, Process *ret) {
        char path[32], text[STAT_SIZE_MAX];

        if (snprintf(path, sizeof(path), "%s/stat", name) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        _cleanup_close_ int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        ssize_t n = read_all(fd, text, sizeof(text) - 1);
        if (n < 0)
                return (int) n;
        text[n] = 0;
        *ret = (Process){};
        return usage_parse_stat(text, &ret->pid, &ret->parent, &ret->ticks, &ret->pages);
}

static int read_all_processes(Process **ret, size_t *ret_n) {
        _cleanup_free_ Process *all = NULL;
        size_t n = 0, room = 0;
        uint64_t number;

        DIR *d = opendir("/proc");
        if (!d)
                return -errno;
        for (const struct dirent *e; (e = readdir(d));) {
                if (parse_u64(e->d_name, INT32_MAX, &number) < 0)
                        continue;
                if (n == room) {
                        Process *grown = reallocarray(all, room * 2 + 64, sizeof(Process));
                        if (!grown) {
                                closedir(d);
                                return -ENOMEM;
                        }
                        all = grown;
                        room = room * 2 + 64;
                }
                if (read_process(dirfd(d), e->d_name, &all[n]) >= 0) /* it may have ended meanwhile */
                        n++;
        }
        closedir(d);
        *ret = TAKE_PTR(all);
        *ret_n = n;
        return 0;
}

static int compare_pids(const void *a, const void *b) {
        const Process *x = a, *y = b;
        return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Counts the root and, round by round, the children of what is counted. */
static void count_below(Process *all, size_t n, pid_t root) {
        bool grew = true;

        qsort(all, n, sizeof(Process), compare_pids);
        for (size_t i = 0; i < n; i++)
                all[i].counted = all[i].pid == root;
        while (grew) {
                grew = false;
                for (size_t i = 0; i < n; i++) {
                        const Process key = {.pid = all[i].parent};
                        const Process *parent = all[i].counted ? NULL : bsearch(&key, all, n, sizeof(Process), compare_pids);
                        if (parent && parent->counted)
                                grew = all[i].counted = true;
                }
        }
}

int usage_read(pid_t root, Usage *ret) {
        _cleanup_free_ Process *all = NULL;
        long page = sysconf(_SC_PAGESIZE), hertz = sysconf(_SC_CLK_TCK);
        Usage usage = {};
        size_t n = 0;

        int r = read_all_processes(&all, &n);
        if (r < 0)
                return r;
        if (n > 0)
                count_below(all, n, root);
        for (size_t i = 0; i < n; i++)
                if (all[i].counted) {
                        usage.memory_bytes += all[i].pages * (uint64_t) page;
                        usage.cpu_usec += all[i].ticks * USEC_PER_SEC / (uint64_t) hertz;
                        usage.processes++;
                }
        if (usage.processes == 0)
                return -ESRCH;
        *ret = usage;
        return 0;
}
