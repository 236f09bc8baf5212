/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "launch/disk-usage.h"

#define BLOCK_SIZE 512U /* of st_blocks, whatever the file system's */
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_IDLE (3 << 13) /* linux/ioprio.h: the class, above the level */
#define WANTED (STATX_TYPE | STATX_NLINK | STATX_UID | STATX_BLOCKS)

typedef struct Walk {
        DIR *levels[DISK_DEPTH_MAX];
        unsigned depth;
        uid_t account;
        DiskUsage usage;
} Walk;

static void add_blocks(Walk *w, const struct statx *sx) {
        uint64_t bytes = sx->stx_blocks * BLOCK_SIZE;

        if (!S_ISDIR(sx->stx_mode) && sx->stx_nlink > 1)
                bytes /= sx->stx_nlink; /* all links of a file below here make one file, and nothing has to be remembered */
        w->usage.bytes += bytes;
}

static int push(Walk *w, int fd) {
        DIR *d = fd_opendir(fd);

        if (!d)
                return negative_errno();
        w->levels[w->depth++] = d;
        return 0;
}

static void enter(Walk *w, int at, const char *name, uid_t owner) {
        if (w->depth == DISK_DEPTH_MAX) {
                w->usage.whole = false;
                return;
        }
        int r = push(w, openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        /* What others closed is not what the session wrote; what has gone meanwhile is not there. */
        if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP && !(r == -EACCES && owner != w->account))
                w->usage.whole = false;
}

static void look_at(Walk *w, int at, const char *name) {
        struct statx sx;

        if (statx(at, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, WANTED, &sx) < 0) {
                if (errno != ENOENT)
                        w->usage.whole = false;
                return;
        }
        /* A subvolume has a device of its own and is no mount: a session can make one. */
        if (S_ISDIR(sx.stx_mode) && (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return;
        add_blocks(w, &sx);
        if (S_ISDIR(sx.stx_mode))
                enter(w, at, name, sx.stx_uid);
}

int disk_usage_measure(int directory, DiskUsage *ret) {
        _cleanup_free_ Walk *w = calloc(1, sizeof(Walk));

        if (!w)
                return -ENOMEM;
        w->account = getuid();
        w->usage.whole = true;
        int r = push(w, openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (r < 0)
                return r;
        while (w->depth > 0) {
                DIR *d = w->levels[w->depth - 1];
                const struct dirent *e = w->usage.entries < DISK_ENTRIES_MAX ? readdir(d) : NULL;
                if (!e) {
                        if (w->usage.entries >= DISK_ENTRIES_MAX)
                                w->usage.whole = false;
                        closedir(d);
                        w->depth--;
                } else if (!streq(e->d_name, ".") && !streq(e->d_name, "..")) {
                        w->usage.entries++;
                        look_at(w, dirfd(d), e->d_name);
                }
        }
        *ret = w->usage;
        return 0;
}

static void map_own(const char *path, unsigned id) {
        char text[64];

        (void) snprintf(text, sizeof(text), "%u %u 1", id, id);
        (void) write_file_once(path, text);
}

void disk_usage_prepare(void) {
        struct rlimit limit;
        uid_t uid = geteuid();
        gid_t gid = getegid();

        if (getrlimit(RLIMIT_NOFILE, &limit) >= 0) {
                limit.rlim_cur = limit.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &limit);
        }
        (void) setpriority(PRIO_PROCESS, 0, 19);
        (void) syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
        if (unshare(CLONE_NEWUSER) < 0)
                return;
        /* Else these files are root's. There is nothing to read in this process. */
        int dumpable = prctl(PR_GET_DUMPABLE);
        (void) prctl(PR_SET_DUMPABLE, 1);
        map_own("/proc/self/uid_map", uid);
        (void) write_file_once("/proc/self/setgroups", "deny");
        map_own("/proc/self/gid_map", gid);
        (void) prctl(PR_SET_DUMPABLE, dumpable == 1);
}
