/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ways round to a file: dots, links, /proc's own links, races, other programs; and the files of the system. */

#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "escape.h"

#define SECRET "private/secret"
#define ROUNDS 300

static long read_at(int directory, const char *path) {
        char c;
        int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return fd < 0 ? -1 : read(fd, &c, 1);
}
static long read_path(const char *path) {
        return read_at(AT_FDCWD, path);
}
static const char *joined(const char *before, const char *after) {
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s%s", before, after);
        return path;
}

static long try_dots(const char *dots) {
        if (chdir(place("work")) < 0)
                broken("chdir");
        return read_path(joined(dots, place(SECRET)));
}
static long try_near_dots(const char *a) {
        (void) a;
        if (chdir(place("work")) < 0)
                broken("chdir");
        return read_path("../" SECRET);
}
static long try_magic(const char *link) {
        return read_path(joined(link, place(SECRET)));
}
static long try_root_descriptor(const char *a) {
        char path[64];

        (void) a;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", open("/", O_PATH | O_CLOEXEC));
        return read_path(joined(path, place(SECRET)));
}
static long try_openat2(const char *a) {
        struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
        long fd = syscall(SYS_openat2, open("/", O_PATH | O_CLOEXEC), place(SECRET), &how, sizeof(how));
        char c;

        (void) a;
        return fd < 0 ? -1 : read((int) fd, &c, 1);
}
static long try_link(const char *name) {
        const char *link = place(name);

        if (symlink(place(SECRET), link) < 0)
                broken(link);
        return read_path(link);
}
static long try_link_up(const char *a) {
        (void) a;
        if (symlink("..", place("work/up")) < 0)
                broken("symlink");
        return read_path(place("work/up/" SECRET));
}
static long try_link_write(const char *a) {
        (void) a;
        if (symlink(place("private/new-by-link"), place("work/link-write")) < 0)
                broken("symlink");
        return open(place("work/link-write"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* A directory and a link that leads outside change places while the other reads through them. */
static long try_race(const char *target) {
        char outside[PATH_MAX];

        snprintf(outside, sizeof(outside), "%s", place(target));
        if (mkdir(place("work/race"), 0700) < 0 || symlink(outside, place("work/race-link")) < 0)
                broken("race");
        pid_t pid = fork();
        if (pid < 0)
                broken("fork");
        if (pid == 0) {
                for (int i = 0; i < ROUNDS; i++)
                        (void) renameat2(AT_FDCWD, place("work/race"), AT_FDCWD, place("work/race-link"), RENAME_EXCHANGE);
                _exit(0);
        }
        long r = -1;
        int error = ENOENT;
        for (int i = 0; i < ROUNDS && r < 0; i++) {
                r = read_path(place("work/race/secret"));
                if (r < 0)
                        error = errno;
        }
        (void) child_result(pid);
        /* An even number of rounds leaves the link where it was: the last look is through it. */
        if (r < 0 && (r = read_path(place("work/race-link/secret"))) < 0)
                error = errno;
        (void) unlink(place("work/race-link"));
        (void) rmdir(place("work/race"));
        errno = error;
        return r;
}
/* The same for a directory that is written to by its name. */
static long try_race_write(const char *a) {
        (void) a;
        if (mkdir(place("work/swap"), 0700) < 0 || symlink(place("private"), place("work/swap-link")) < 0 ||
            renameat2(AT_FDCWD, place("work/swap"), AT_FDCWD, place("work/swap-link"), RENAME_EXCHANGE) < 0)
                broken("exchange");
        return open(place("work/swap/new-by-swap"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* A ruleset that allows everything is one more, not another. */
static long try_widen(const char *a) {
        struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
        struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE, .parent_fd = open("/", O_PATH | O_CLOEXEC)};
        long ruleset = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

        (void) a;
        (void) syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void) syscall(SYS_landlock_restrict_self, ruleset, 0);
        return read_path(place(SECRET));
}

/* This program again, by other ways than its name: it stays as confined. */
static long run_again(int fd) {
        char root[PATH_MAX];

        snprintf(root, sizeof(root), "root=%s", fixture("root"));
        const char *const argv[] = {"escape", "one", "private-read", root, NULL}, *const none[] = {NULL};
        pid_t pid = fork();
        if (pid == 0) {
                (void) syscall(SYS_execveat, fd, "", argv, none, AT_EMPTY_PATH);
                broken("execveat");
        }
        return child_result(pid);
}
static long try_memory_program(const char *flags) {
        int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = memfd_create("escape", (unsigned) number(flags));
        struct stat st;

        if (from < 0 || to < 0 || fstat(from, &st) < 0)
                broken("memfd");
        for (off_t at = 0; at < st.st_size;)
                if (sendfile64(to, from, &at, (size_t) (st.st_size - at)) <= 0)
                        broken("sendfile");
        if (number(flags) & MFD_ALLOW_SEALING)
                (void) fcntl(to, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
        return run_again(to);
}
static long try_loader(const char *program) {
        const char *path = place(program), *loader = fixture("loader");
        pid_t pid = fork();

        if (pid == 0) {
                (void) execl(loader, loader, path, (char *) NULL);
                _exit(errno);
        }
        /* The loader says 127 of whatever it could not map. */
        return child_result(pid) < 0 ? (errno = EPERM, -1) : 0;
}
static long try_privileged(const char *program) {
        const char *path = fixture(program);
        pid_t pid = fork();

        if (pid == 0) {
                (void) execl(path, "escape", "privileged", (char *) NULL);
                _exit(errno);
        }
        return child_result(pid);
}
static long try_file_capability(const char *a) {
        /* VFS_CAP_REVISION_2, CAP_SYS_ADMIN. */
        static const uint32_t value[5] = {0x02000001, 1U << 21, 0, 0, 0};

        (void) a;
        return setxattr(place("work/file"), "security.capability", value, sizeof(value), 0);
}
static long try_owner(const char *a) {
        (void) a;
        return chown(place("work/file"), 0, 0);
}
static long try_device(const char *kind) {
        bool block = *kind == 'b';
        long r = mknod(place(block ? "work/block" : "work/character"), (block ? S_IFBLK : S_IFCHR) | 0600, makedev(1, 3));
        return r;
}

static long try_open_read(const char *path) {
        return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}
static long try_open_write(const char *path) {
        return open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}
/* One that needs no privilege, and that is not among those that every file has. */
static long try_device_control(const char *path) {
        int count, fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                broken(path);
        return ioctl(fd, RNDGETENTCNT, &count);
}
static long try_fixture_write(const char *name) {
        return try_open_write(fixture(name));
}
static long try_fixture_read(const char *name) {
        return try_open_read(fixture(name));
}
static long try_map_ids(const char *a) {
        (void) a;
        (void) unshare(CLONE_NEWUSER);
        int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
        char line[32];

        snprintf(line, sizeof(line), "0 %u 1\n", (unsigned) fixture_number("uid"));
        return fd < 0 ? -1 : write(fd, line, strlen(line));
}

#define HIDDEN (STOP_NAMESPACES | STOP_LANDLOCK)
#define ROUND(n, w, f, a, e) {.name = n, .what = w, .try = f, .argument = a, .error = e, .stops = HIDDEN, .ids = "T009 T010 C014"}
#define SYSTEM(n, w, path, e) \
        {.name = n, .what = w, .try = try_open_write, .argument = path, .error = e, .stops = HIDDEN | STOP_PRIVILEGE, .off = OFF_ROOT, \
         .optional = true, .ids = "T002 C045"}
#define OWN(n, w, path, o, s) \
        {.name = n, .what = w, .try = try_open_write, .argument = path, .error = EACCES, .stops = s, .off = o, .ids = "C041 T009"}

static const Attempt rows[] = {
        ROUND("dots", "a file above the root", try_dots, "../../../../../../../../..", ENOENT),
        ROUND("dots-root", "the same from the root", try_dots, "/../../..", ENOENT),
        ROUND("dots-near", "a file beside the granted directory", try_near_dots, NULL, ENOENT),
        ROUND("proc-self-root", "a file through the own root", try_magic, "/proc/self/root", ENOENT),
        ROUND("proc-self-cwd", "a file through the own directory", try_magic, "/proc/self/cwd/../../../../../../..", ENOENT),
        ROUND("proc-thread-root", "a file through a thread's root", try_magic, "/proc/thread-self/root", ENOENT),
        ROUND("proc-self-fd", "a file through a descriptor of the root", try_root_descriptor, NULL, ENOENT),
        ROUND("openat2", "a file by the newest way to open", try_openat2, NULL, ENOENT),
        ROUND("symlink", "a file through a link", try_link, "work/symlink", ENOENT),
        ROUND("symlink-tmp", "a file through a link in a directory of many", try_link, "work/sub/symlink", ENOENT),
        ROUND("symlink-up", "a file through a link to the directory above", try_link_up, NULL, ENOENT),
        ROUND("symlink-write", "a new file through a link", try_link_write, NULL, ENOENT),
        ROUND("race-read", "a file through a link that comes and goes", try_race, "private", ENOENT),
        ROUND("race-write", "a new file through a link that took a directory's place", try_race_write, NULL, ENOENT),
        ROUND("landlock-widen", "a ruleset that allows all", try_widen, NULL, ENOENT),
        ROUND("program-memory", "a file, by a program that is in no file", try_memory_program, "1", ENOENT),
        ROUND("program-memory-sealed", "the same, sealed", try_memory_program, "3", ENOENT),
        {.name = "loader-data", .what = "a program that is granted for reading only, by the loader", .try = try_loader, .argument = "data/true",
         .error = EPERM, .stops = STOP_NAMESPACES, .ids = "T009"},
        ROUND("loader-private", "a program that is not granted, by the loader", try_loader, "private/true", EPERM),
        {.name = "set-user-id", .what = "root by a set-user-id program", .try = try_privileged, .argument = "suid", .error = EPERM,
         .stops = STOP_PRIVILEGE, .ids = "C045"},
        {.name = "set-group-id", .what = "root's group by a set-group-id program", .try = try_privileged, .argument = "sgid", .error = EPERM,
         .stops = STOP_PRIVILEGE, .ids = "C045"},
        {.name = "file-capabilities", .what = "a capability by a program that has it", .try = try_privileged, .argument = "fscap", .error = EPERM,
         .stops = STOP_PRIVILEGE, .ids = "C045"},
        {.name = "file-capability", .what = "a capability for a file", .try = try_file_capability, .error = EPERM, .stops = STOP_PRIVILEGE,
         .off = OFF_PRIVATE, .ids = "C045"},
        {.name = "file-owner", .what = "a file for root", .try = try_owner, .error = EINVAL, .stops = STOP_PRIVILEGE, .off = OFF_PRIVATE,
         .ids = "C045"},
        {.name = "mknod-character", .what = "a device", .try = try_device, .argument = "c", .error = EACCES, .stops = HIDDEN | STOP_PRIVILEGE,
         .off = OFF_ROOT, .ids = "T009"},
        {.name = "mknod-block", .what = "a disk", .try = try_device, .argument = "b", .error = EACCES, .stops = HIDDEN | STOP_PRIVILEGE,
         .off = OFF_ROOT, .ids = "T009"},
        OWN("own-memory", "own text changed", "/proc/self/mem", OFF_PLAIN, STOP_LANDLOCK),
        OWN("own-name", "own name in lists", "/proc/self/comm", OFF_PLAIN, STOP_LANDLOCK),
        OWN("own-oom-score", "who dies first", "/proc/self/oom_score_adj", OFF_PLAIN, STOP_LANDLOCK),
        OWN("own-dump-filter", "what a core file holds", "/proc/self/coredump_filter", OFF_PLAIN, STOP_LANDLOCK),
        OWN("own-timer-slack", "a file of a process", "/proc/self/timerslack_ns", OFF_PLAIN, STOP_LANDLOCK),
        {.name = "own-uid-map", .what = "ids mapped", .try = try_map_ids, .error = EACCES, .stops = HIDDEN | STOP_SECCOMP, .ids = "T017"},
        OWN("limit-namespaces", "namespaces allowed again", "/proc/sys/user/max_user_namespaces", OFF_PRIVATE, HIDDEN | STOP_PRIVILEGE),
        OWN("sysctl-forward", "packets passed on", "/proc/sys/net/ipv4/ip_forward", OFF_PRIVATE, HIDDEN | STOP_PRIVILEGE),
        OWN("sysctl-ports", "ports that are trusted", "/proc/sys/net/ipv4/ip_unprivileged_port_start", OFF_PRIVATE, HIDDEN | STOP_PRIVILEGE),
        OWN("sysctl-shared-memory", "shared memory without bound", "/proc/sys/kernel/shmmax", OFF_PRIVATE, HIDDEN | STOP_PRIVILEGE),
        SYSTEM("sysctl-core-pattern", "a program that root runs at a crash", "/proc/sys/kernel/core_pattern", EACCES),
        SYSTEM("sysctl-modprobe", "a program that root runs for a module", "/proc/sys/kernel/modprobe", EACCES),
        SYSTEM("sysctl-caches", "everybody's caches", "/proc/sys/vm/drop_caches", EACCES),
        SYSTEM("sysctl-randomize", "where programs lie", "/proc/sys/kernel/randomize_va_space", EACCES),
        SYSTEM("sysrq-trigger", "the machine down", "/proc/sysrq-trigger", EACCES),
        SYSTEM("uevent-helper", "a program that root runs for a device", "/sys/kernel/uevent_helper", EACCES),
        SYSTEM("power-state", "the machine asleep", "/sys/power/state", EACCES),
        SYSTEM("etc-passwd", "another root", "/etc/passwd", EACCES),
        SYSTEM("usr-program", "a program of everybody", "/usr/bin/true", EACCES),
        SYSTEM("device-memory", "the machine's memory", "/dev/mem", ENOENT),
        SYSTEM("device-log", "the kernel's log", "/dev/kmsg", ENOENT),
        SYSTEM("device-loop", "file systems from files", "/dev/loop-control", ENOENT),
        SYSTEM("device-network", "network interfaces", "/dev/net/tun", ENOENT),
        SYSTEM("device-fuse", "file systems of one's own", "/dev/fuse", ENOENT),
        {.name = "device-control", .what = "a driver behind a device granted for reading", .try = try_device_control,
         .argument = "/dev/urandom", .error = EACCES, .stops = STOP_IOCTL, .ids = "T009"},
        {.name = "proc-kmsg", .what = "the kernel's log", .try = try_open_read, .argument = "/proc/kmsg", .error = EACCES,
         .stops = HIDDEN | STOP_PRIVILEGE, .off = OFF_ROOT, .optional = true, .ids = "C045"},
        {.name = "proc-kcore", .what = "the kernel's memory", .try = try_open_read, .argument = "/proc/kcore", .error = EACCES,
         .stops = HIDDEN | STOP_PRIVILEGE, .off = OFF_ROOT, .optional = true, .ids = "C045"},
        {.name = "shadow", .what = "password hashes", .try = try_open_read, .argument = "/etc/shadow", .error = EACCES,
         .stops = HIDDEN | STOP_PRIVILEGE, .off = OFF_ROOT, .ids = "T001"},
        {.name = "cgroup", .what = "which control groups there are", .try = try_fixture_read, .argument = "cgroup", .error = ENOENT,
         .stops = STOP_NAMESPACES, .ids = "T019"},
        {.name = "shm-file", .what = "POSIX shared memory of processes outside", .try = try_fixture_read, .argument = "shmfile",
         .error = ENOENT, .stops = STOP_TMP | STOP_LANDLOCK, .ids = "Q025"},
        {.name = "shm-file-write", .what = "the same, changed", .try = try_fixture_write, .argument = "shmfile",
         .error = ENOENT, .stops = STOP_TMP | STOP_LANDLOCK, .ids = "Q025"},
        {.name = "tmp-file", .what = "a file in everybody's /tmp", .try = try_fixture_read, .argument = "tmpfile", .error = ENOENT,
         .stops = STOP_TMP | STOP_LANDLOCK, .ids = "Q025"},
        {.name = "tmp-file-write", .what = "the same, changed", .try = try_fixture_write, .argument = "tmpfile", .error = ENOENT,
         .stops = STOP_TMP | STOP_LANDLOCK, .ids = "Q025"},
        {.name = "home-file", .what = "a file of the real home directory", .try = try_fixture_read, .argument = "homefile", .error = ENOENT,
         .stops = HIDDEN, .ids = "T001 Q009"},
        {.name = "home-file-write", .what = "a shell's start-up file", .try = try_fixture_write, .argument = "homefile", .error = ENOENT,
         .stops = HIDDEN, .ids = "T002 Q009"},
};

const AttemptTable escape_places = {rows, sizeof(rows) / sizeof(rows[0])};
