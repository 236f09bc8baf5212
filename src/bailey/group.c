/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/group.h"
#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"

#define LEAVES_MAX 64U            /* runs at a time below one root */
#define KILLS_MAX 64U             /* of a group that a run is begun in */
#define FILE_SIZE_MAX (1U << 20)  /* a list of processes */
#define REMOVE_USEC (5 * USEC_PER_SEC)
#define CPU_PERIOD_USEC 100000U   /* the kernel's default */

_printf_(2, 3) static void lack(Group *g, const char *format, ...) {
        size_t n = strlen(g->lack);
        va_list ap;

        if (n > 0)
                n += (size_t) MAX(snprintf(g->lack + n, sizeof(g->lack) - n, "; "), 0);
        if (n >= sizeof(g->lack))
                return;
        va_start(ap, format);
        (void) vsnprintf(g->lack + n, sizeof(g->lack) - n, format, ap);
        va_end(ap);
}

/* ---- files of a group ---- */

static int write_at(int group, const char *file, const char *text) {
        _cleanup_close_ int fd = openat(group, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int read_at(int group, const char *file, char **ret) {
        _cleanup_close_ int fd = openat(group, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        return fd < 0 ? -errno : read_fd_full(fd, FILE_SIZE_MAX, ret, NULL);
}

/* Whether one of the words in the file is that word. */
static bool has_word(int group, const char *file, const char *word) {
        _cleanup_free_ char *text = NULL;
        size_t size = strlen(word);

        if (read_at(group, file, &text) < 0)
                return false;
        for (const char *p = text; *p; p += strspn(p, " \n")) {
                size_t n = strcspn(p, " \n");
                if (n == size && strncmp(p, word, n) == 0)
                        return true;
                p += n;
        }
        return false;
}

static bool holds_this_process(int group) {
        char pid[16];

        (void) snprintf(pid, sizeof(pid), "%d", (int) getpid());
        return has_word(group, "cgroup.procs", pid);
}

int group_join(int directory) {
        return write_at(directory, "cgroup.procs", "0");
}

/* ---- the root ---- */

static int open_directory(const char *path) {
        struct statfs st;

        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstatfs(fd, &st) < 0)
                return -errno;
        return (unsigned long) st.f_type == CGROUP2_SUPER_MAGIC ? TAKE_FD(fd) : -ENODEV;
}

/* Only the system's manager marks what it delegates (user.delegate, systemd 251); an account's own leaves no sign but whose the
 * files are. */
static bool delegated(int group) {
        return faccessat(group, ".", W_OK, 0) == 0 && faccessat(group, "cgroup.procs", W_OK, 0) == 0 &&
               faccessat(group, "cgroup.subtree_control", W_OK, 0) == 0;
}

/* The line of the unified hierarchy has number 0 and names no controllers; see cgroups(7). */
static int own_path(char **ret) {
        _cleanup_free_ char *text = NULL;

        int r = read_file_full("/proc/self/cgroup", FILE_SIZE_MAX, &text, NULL);
        if (r < 0)
                return r;
        for (const char *line = text; *line; line += strspn(line, "\n")) {
                size_t n = strcspn(line, "\n");
                const char *path = startswith(line, "0::/");
                if (path) {
                        *ret = strndup(path, n - STRLEN("0::/"));
                        return !*ret ? -ENOMEM : startswith(path, "..") ? -EXDEV : 0;
                }
                line += n;
        }
        return -ENODATA;
}

/* The group that this process is in, found where systemd mounts the hierarchy. */
static int open_own(char **ret_path) {
        static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
        _cleanup_free_ char *path = NULL;

        int r = own_path(&path);
        for (size_t i = 0; i < ELEMENTSOF(mounts) && r >= 0; i++) {
                _cleanup_free_ char *full = NULL;
                if (asprintf(&full, "%s%s%s", mounts[i], *path ? "/" : "", path) < 0) {
                        full = NULL;
                        return -ENOMEM;
                }
                _cleanup_close_ int fd = open_directory(full);
                if (fd >= 0 && holds_this_process(fd)) {
                        *ret_path = TAKE_PTR(full);
                        return TAKE_FD(fd);
                }
        }
        return r < 0 ? r : -ENODATA;
}

/* *ret_path is the root's, to free. */
static bool find_root(Group *g, char **ret_path) {
        const char *said = getenv(GROUP_ROOT_VARIABLE);
        _cleanup_free_ char *path = NULL;

        if (said && *said) {
                path = strdup(said);
                g->root = !path ? -ENOMEM : said[0] == '/' ? open_directory(said) : -EINVAL;
                if (g->root < 0)
                        lack(g, GROUP_ROOT_VARIABLE " is %s: %s", said, g->root == -ENODEV ? "that is no group of the unified hierarchy (cgroup v2)"
                             : g->root == -EINVAL ? "that is no absolute path" : strerror(-g->root));
        } else {
                g->root = open_own(&path);
                if (g->root < 0)
                        lack(g, "there is no cgroup v2 that bailey is in");
                else if (!delegated(g->root)) {
                        g->root = safe_close(g->root);
                        lack(g, "the group that bailey is in, %s, is not delegated to this account", path);
                }
        }
        if (g->root < 0)
                return false;
        *ret_path = TAKE_PTR(path);
        return true;
}

/* ---- the leaf ---- */

/* Who makes a leaf, or takes one that was left behind away, holds a lock on it: 0, or -EBUSY for somebody else's. */
static int make_leaf(int root, const char *name, int *ret) {
        struct stat now, mine;

        if (mkdirat(root, name, 0755) < 0) {
                if (errno != EEXIST)
                        return -errno;
                _cleanup_close_ int old = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (old < 0 || flock(old, LOCK_EX | LOCK_NB) < 0 || unlinkat(root, name, AT_REMOVEDIR) < 0 || mkdirat(root, name, 0755) < 0)
                        return -EBUSY;
        }
        _cleanup_close_ int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &mine) < 0 || fstatat(root, name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
            now.st_ino != mine.st_ino)
                return -EBUSY;
        *ret = TAKE_FD(fd);
        return 0;
}

static bool make_payload(Group *g, const char *path) {
        int r = -EBUSY;

        for (unsigned i = 1; i <= LEAVES_MAX && r == -EBUSY; i++) {
                (void) snprintf(g->name, sizeof(g->name), i == 1 ? "payload" : "payload-%u", i);
                r = make_leaf(g->root, g->name, &g->directory);
        }
        if (r < 0)
                lack(g, "no group can be made in %s: %s", path, strerror(-r));
        return r >= 0;
}

/* ---- limits ---- */

/* To where bailey does not stand in the way of controllers. Some can be enabled all the same, and make the groups below unusable. */
static int leave_root(int root) {
        if (!holds_this_process(root))
                return 0;
        if (mkdirat(root, "init", 0755) < 0 && errno != EEXIST)
                return -errno;
        return write_at(root, "init/cgroup.procs", "0");
}

static bool enable(Group *g, const char *path, const char *controller, const char *limit) {
        char word[16];

        if (has_word(g->root, "cgroup.subtree_control", controller))
                return true;
        if (!has_word(g->root, "cgroup.controllers", controller)) {
                lack(g, "%s: %s has no controller for it", limit, path);
                return false;
        }
        (void) snprintf(word, sizeof(word), "+%s", controller);
        int r = leave_root(g->root);
        if (r >= 0)
                r = write_at(g->root, "cgroup.subtree_control", word);
        if (r < 0)
                lack(g, "%s: %s", limit, r == -EBUSY ? "other processes than bailey are in its group" : strerror(-r));
        return r >= 0;
}

/* Writes a limit and looks at what the kernel made of it: at most that number. */
static int limit(Group *g, const char *file, uint64_t value, const char *after) {
        _cleanup_free_ char *text = NULL;
        char wanted[64];
        uint64_t held;

        (void) snprintf(wanted, sizeof(wanted), "%llu%s", (unsigned long long) value, after);
        int r = write_at(g->directory, file, wanted);
        if (r >= 0)
                r = read_at(g->directory, file, &text);
        if (r < 0)
                return r;
        size_t n = strcspn(text, " \n");
        if (parse_u64_n(text, n, UINT64_MAX, &held) < 0 || held > value)
                return -EBADMSG;
        return *after && strncmp(text + n, after, strlen(after)) != 0 ? -EBADMSG : 0;
}

static int limit_memory(Group *g, uint64_t bytes) {
        struct sysinfo info;

        int r = limit(g, "memory.max", bytes, "");
        if (r < 0)
                return r;
        /* A kernel that does not account for swap has no such file; then there must be none. */
        r = limit(g, "memory.swap.max", 0, "");
        if (r == -ENOENT && sysinfo(&info) == 0 && info.totalswap == 0)
                r = 0;
        /* All of it or nothing: what is left of a build whose largest process is gone is of no use. */
        return r < 0 ? r : limit(g, "memory.oom.group", 1, "");
}

static void apply(Group *g, const PlanLimits *limits, const char *path) {
        char period[16];
        int r;

        if (limits->memory_bytes > 0 && enable(g, path, "memory", "memory")) {
                r = limit_memory(g, limits->memory_bytes);
                if (r < 0)
                        lack(g, "memory: the kernel does not hold it: %s", strerror(-r));
        }
        if (limits->pids > 0 && enable(g, path, "pids", "pids_max")) {
                r = limit(g, "pids.max", limits->pids, "");
                if (r < 0)
                        lack(g, "pids_max: the kernel does not hold it: %s", strerror(-r));
        }
        if (limits->cpu_percent > 0 && enable(g, path, "cpu", "cpu_percent")) {
                (void) snprintf(period, sizeof(period), " %u", CPU_PERIOD_USEC);
                r = limit(g, "cpu.max", limits->cpu_percent * (CPU_PERIOD_USEC / 100), period);
                if (r < 0)
                        lack(g, "cpu_percent: the kernel does not hold it: %s", strerror(-r));
        }
}

/* ---- whether it can be used ---- */

/* 0, or -EOWNERDEAD when the process that was made there was killed at once. */
static int try_directory(int directory) {
        /* No signal at its end: a caller that ignores SIGCHLD would lose its status. */
        struct clone_args args = {.flags = CLONE_INTO_CGROUP, .cgroup = (uint64_t) directory};
        int status = 0;

        long pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid == 0)
                _exit(EXIT_SUCCESS);
        if (pid < 0)
                return -errno;
        while (waitpid((pid_t) pid, &status, __WALL) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFSIGNALED(status) ? -EOWNERDEAD : 0;
}

/* Kernels that count the kills of a group (Linux 6.14, and older ones that were mended in the same way) take what is made in another
 * group than its parent's for killed when the two counts differ. Killing in the new, empty one brings it up to the parent's. */
void group_check(Group *g) {
        int r = try_directory(g->directory);

        g->checked = true;
        if (r == -EOPNOTSUPP) { /* the root has such a controller already, and processes again */
                r = leave_root(g->root);
                if (r >= 0)
                        r = try_directory(g->directory);
        }
        for (unsigned i = 0; i < KILLS_MAX && r == -EOWNERDEAD; i++) {
                r = write_at(g->directory, "cgroup.kill", "1");
                if (r >= 0)
                        r = try_directory(g->directory);
        }
        if (r >= 0 || r == -ENOSYS || r == -EPERM) /* without clone3 it is joined: see init.c */
                return;
        lack(g, r == -EACCES ? "this account may not move processes from the group that bailey is in to %s" :
             r == -EOPNOTSUPP ? "other processes than bailey are in %s" : "no process can be started in %s", g->path);
        (void) unlinkat(g->root, g->name, AT_REMOVEDIR);
        g->directory = safe_close(g->directory);
}

void group_make(const PlanLimits *limits, Group *ret) {
        const char *said = getenv(GROUP_ROOT_VARIABLE);

        *ret = GROUP_NONE;
        if (!plan_limits_any(limits) && (!said || !*said))
                return;
        if (find_root(ret, &ret->path) && make_payload(ret, ret->path))
                apply(ret, limits, ret->path);
}

/* ---- the end ---- */

uint64_t group_oom_kills(const Group *g) {
        _cleanup_free_ char *text = NULL;
        uint64_t n = 0;

        if (g->directory < 0 || read_at(g->directory, "memory.events", &text) < 0)
                return 0;
        for (const char *line = text; *line; line += strspn(line, "\n")) {
                const char *value = startswith(line, "oom_kill ");
                size_t size = strcspn(line, "\n");
                if (value && parse_u64_n(value, size - STRLEN("oom_kill "), UINT64_MAX, &n) < 0)
                        return 0;
                line += size;
        }
        return n;
}

/* Kills what is in it, and waits until the kernel says that nothing is. */
static void empty(int directory) {
        usec_t end = now_monotonic() + REMOVE_USEC;

        _cleanup_close_ int events = openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC);
        if (events < 0 || write_at(directory, "cgroup.kill", "1") < 0)
                return;
        for (usec_t now; (now = now_monotonic()) < end;) {
                char text[128];
                ssize_t n = pread(events, text, sizeof(text) - 1, 0);
                text[MAX(n, 0)] = 0;
                if (n <= 0 || !strstr(text, "populated 1"))
                        return;
                (void) poll(&(struct pollfd){.fd = events, .events = POLLPRI}, 1, (int) ((end - now) / 1000 + 1));
        }
}

void group_remove(Group *g) {
        if (g->directory >= 0 && unlinkat(g->root, g->name, AT_REMOVEDIR) < 0 && errno == EBUSY) {
                empty(g->directory);
                if (unlinkat(g->root, g->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                        log_warning_errno(errno, "Failed to remove the run's control group, ignoring: %m");
        }
        g->directory = safe_close(g->directory);
        g->root = safe_close(g->root);
        g->path = mfree(g->path);
}

int group_probe(char ret[512]) {
        static const char *const controllers[] = {"memory", "pids", "cpu"};
        _cleanup_free_ char *path = NULL;
        Group g = GROUP_NONE;
        size_t n = 0, found = 0;

        if (find_root(&g, &path) && make_payload(&g, path)) {
                for (size_t i = 0; i < ELEMENTSOF(controllers); i++) {
                        bool there = has_word(g.root, "cgroup.controllers", controllers[i]);
                        found += there;
                        if (there)
                                n += (size_t) MAX(snprintf(ret + n, 512 - n, "%s%s", n > 0 ? ", " : "", controllers[i]), 0);
                        else
                                lack(&g, "%s has no controller for %s", path, controllers[i]);
                }
                if (found == ELEMENTSOF(controllers))
                        (void) snprintf(ret + n, 512 - n, "; below %.400s", path);
        }
        group_remove(&g);
        if (!g.lack[0])
                return 0;
        (void) snprintf(ret, 512, "%s", g.lack);
        return -EOPNOTSUPP;
}
