/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every operation on a file, in each kind of place: "private" is not granted, "data" granted for reading, "work" for everything but
 * "work/denied", and in it "work/island" for reading only. Each operation has a file of its own name, so that none is in another's
 * way. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "escape.h"

static const char *in(const char *directory, const char *name) {
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        return place(path);
}
/* Where something would be taken to: the directory's name makes it another for each. */
static const char *loot(const char *directory, const char *operation) {
        char path[256];

        snprintf(path, sizeof(path), "work/%s-%s", operation, strrchr(directory, '/') ? strrchr(directory, '/') + 1 : directory);
        return place(path);
}

static long try_read(const char *d) {
        char c;
        int fd = open(in(d, "secret"), O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -1 : read(fd, &c, 1);
}
static long try_stat(const char *d) {
        struct stat st;
        return lstat(in(d, "secret"), &st);
}
static long try_access(const char *d) {
        return access(in(d, "secret"), F_OK);
}
static long try_path(const char *d) {
        return open(in(d, "secret"), O_PATH | O_CLOEXEC);
}
static long try_list(const char *d) {
        return open(place(d), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
static long try_enter(const char *d) {
        return chdir(place(d));
}
static long try_watch(const char *d) {
        return inotify_add_watch(inotify_init1(IN_CLOEXEC), in(d, "secret"), IN_ACCESS);
}
static long try_readlink(const char *d) {
        char text[64];
        return readlink(in(d, "symlink"), text, sizeof(text));
}
static long try_get_attribute(const char *d) {
        char text[64];
        return getxattr(in(d, "attribute"), "user.escape", text, sizeof(text));
}
static long try_run(const char *d) {
        const char *path = in(d, "program");
        pid_t pid = fork();

        if (pid == 0) {
                (void) execl(path, "program", "nothing", (char *) NULL);
                _exit(errno);
        }
        return child_result(pid);
}
static long try_map(const char *d) {
        int fd = open(in(d, "program"), O_RDONLY | O_CLOEXEC);
        return fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0;
}

static long try_write(const char *d) {
        return open(in(d, "write"), O_WRONLY | O_CLOEXEC);
}
static long try_append(const char *d) {
        return open(in(d, "write"), O_WRONLY | O_APPEND | O_CLOEXEC);
}
static long try_truncate(const char *d) {
        return truncate(in(d, "truncate"), 0);
}
static long try_open_truncate(const char *d) {
        return open(in(d, "truncate"), O_RDONLY | O_TRUNC | O_CLOEXEC);
}
static long try_create(const char *d) {
        return open(in(d, "new-file"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}
static long try_temporary(const char *d) {
        return open(place(d), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
}
static long try_mkdir(const char *d) {
        return mkdir(in(d, "new-directory"), 0700);
}
static long try_symlink(const char *d) {
        return symlink("/", in(d, "new-link"));
}
static long try_fifo(const char *d) {
        return mkfifo(in(d, "new-fifo"), 0600);
}
static long try_bind(const char *d) {
        struct sockaddr_un u = {.sun_family = AF_UNIX};

        strncpy(u.sun_path, in(d, "new-socket"), sizeof(u.sun_path) - 1);
        return bind(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *) &u, sizeof(u));
}
static long try_unlink(const char *d) {
        return unlink(in(d, "unlink"));
}
static long try_rmdir(const char *d) {
        return rmdir(in(d, "directory"));
}
static long try_rename_out(const char *d) {
        return rename(in(d, "rename"), loot(d, "renamed"));
}
static long try_rename_over(const char *d) {
        const char *from = loot(d, "over");
        int fd = open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0)
                broken(from);
        return rename(from, in(d, "replace"));
}
static long try_exchange(const char *d) {
        const char *from = loot(d, "exchanged");
        int fd = open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0)
                broken(from);
        return renameat2(AT_FDCWD, from, AT_FDCWD, in(d, "exchange"), RENAME_EXCHANGE);
}
static long try_link_out(const char *d) {
        return link(in(d, "link"), loot(d, "linked"));
}
static long try_mode(const char *d) {
        return chmod(in(d, "mode"), 0666);
}
static long try_owner(const char *d) {
        return chown(in(d, "mode"), getuid(), getgid());
}
static long try_times(const char *d) {
        return utimensat(AT_FDCWD, in(d, "times"), NULL, 0);
}
static long try_set_attribute(const char *d) {
        return setxattr(in(d, "attribute"), "user.escape", "x", 1, 0);
}

/* Whole directories: what is denied or read-only inside of a grant must not be moved away. */
static long try_move_directory(const char *d) {
        return rename(place(d), loot(d, "moved"));
}
static long try_exchange_directory(const char *d) {
        const char *other = loot(d, "other");

        if (mkdir(other, 0700) < 0)
                broken(other);
        return renameat2(AT_FDCWD, other, AT_FDCWD, place(d), RENAME_EXCHANGE);
}

#define HIDDEN (STOP_NAMESPACES | STOP_LANDLOCK)
#define P(n, w, f, s, i) {.name = "private-" n, .what = w ", not granted", .try = f, .argument = "private", .error = ENOENT, .stops = s, .ids = i}
#define D(n, w, f, e, i) {.name = "denied-" n, .what = w ", denied inside of a grant", .try = f, .argument = "work/denied", .error = e, .stops = STOP_COVER, .ids = i}
#define R(n, w, f, e, s) {.name = "data-" n, .what = w ", granted for reading", .try = f, .argument = "data", .error = e, .stops = s, .ids = "T009 C022"}
#define I(n, w, f, e) {.name = "island-" n, .what = w ", read-only inside of a grant", .try = f, .argument = "work/island", .error = e, .stops = STOP_ISLAND, .ids = "C020 T024"}

static const Attempt rows[] = {
        P("read", "a file's text", try_read, HIDDEN, "T001 T009 T010 Q011"),
        P("stat", "that a file is there", try_stat, STOP_NAMESPACES, "T010 Q020"),
        P("access", "that a file is there", try_access, STOP_NAMESPACES, "T010 Q020"),
        P("path", "a descriptor that opens nothing", try_path, STOP_NAMESPACES, "T010"),
        P("list", "names", try_list, HIDDEN, "T009 T010"),
        P("enter", "a directory", try_enter, STOP_NAMESPACES, "T010"),
        P("watch", "when a file is read", try_watch, STOP_NAMESPACES, "T010"),
        P("readlink", "where a link leads", try_readlink, STOP_NAMESPACES, "T010"),
        P("run", "a program", try_run, HIDDEN, "T009"),
        P("map", "a program's text", try_map, HIDDEN, "T009"),
        P("write", "a file changed", try_write, HIDDEN, "T002 T009"),
        P("append", "a file longer", try_append, HIDDEN, "T002 T009"),
        P("truncate", "a file emptied", try_truncate, STOP_NAMESPACES | STOP_TRUNCATE, "T002 T009"),
        P("open-truncate", "a file emptied by opening", try_open_truncate, HIDDEN, "T002 T009"),
        P("create", "a new file", try_create, HIDDEN, "T002 T009"),
        P("temporary", "a new file without a name", try_temporary, HIDDEN, "T002 T009"),
        P("mkdir", "a new directory", try_mkdir, HIDDEN, "T002 T009"),
        P("symlink", "a new link", try_symlink, HIDDEN, "T002 T009"),
        P("fifo", "a new pipe", try_fifo, HIDDEN, "T002 T009"),
        P("bind", "a new socket", try_bind, HIDDEN, "T002 T009"),
        P("unlink", "a file gone", try_unlink, HIDDEN, "T002 T009"),
        P("rmdir", "a directory gone", try_rmdir, HIDDEN, "T002 T009"),
        P("rename", "a file taken away", try_rename_out, HIDDEN, "T009"),
        P("rename-over", "a file replaced", try_rename_over, HIDDEN, "T002 T009"),
        P("exchange", "a file exchanged", try_exchange, HIDDEN, "T002 T009"),
        P("link", "another name for a file", try_link_out, HIDDEN, "T009"),
        P("mode", "a file open to all", try_mode, STOP_NAMESPACES, "T002"),
        P("times", "a file's times", try_times, STOP_NAMESPACES, "T002"),
        P("set-attribute", "a file's attributes", try_set_attribute, STOP_NAMESPACES, "T002"),
        D("read", "a file's text", try_read, EACCES, "C020 T024"),
        D("stat", "that a file is there", try_stat, EACCES, "C020 T024"),
        D("write", "a file changed", try_write, EACCES, "C020 T024"),
        D("create", "a new file", try_create, EACCES, "C020 T024"),
        D("unlink", "a file gone", try_unlink, EACCES, "C020 T024"),
        D("link", "another name for a file", try_link_out, EACCES, "C020 T024"),
        D("rmdir", "a directory gone", try_rmdir, EACCES, "C020"),
        D("exchange", "the whole directory exchanged", try_exchange_directory, EBUSY, "C020"),
        D("move", "the whole directory away", try_move_directory, EBUSY, "C020"),
        R("write", "a file changed", try_write, EROFS, HIDDEN),
        R("append", "a file longer", try_append, EROFS, HIDDEN),
        R("truncate", "a file emptied", try_truncate, EROFS, STOP_NAMESPACES | STOP_TRUNCATE),
        R("open-truncate", "a file emptied by opening", try_open_truncate, EROFS, STOP_NAMESPACES | STOP_TRUNCATE),
        R("create", "a new file", try_create, EROFS, HIDDEN),
        R("temporary", "a new file without a name", try_temporary, EROFS, HIDDEN),
        R("mkdir", "a new directory", try_mkdir, EROFS, HIDDEN),
        R("symlink", "a new link", try_symlink, EROFS, HIDDEN),
        R("fifo", "a new pipe", try_fifo, EROFS, HIDDEN),
        R("bind", "a new socket", try_bind, EROFS, HIDDEN),
        R("unlink", "a file gone", try_unlink, EROFS, HIDDEN),
        R("rmdir", "a directory gone", try_rmdir, EROFS, HIDDEN),
        R("rename", "a file taken away", try_rename_out, EXDEV, HIDDEN),
        R("rename-over", "a file replaced", try_rename_over, EXDEV, HIDDEN),
        R("exchange", "a file exchanged", try_exchange, EXDEV, HIDDEN),
        R("link", "a name that may be written to", try_link_out, EXDEV, HIDDEN),
        R("run", "a program", try_run, EACCES, HIDDEN),
        R("map", "a program's text to execute", try_map, EPERM, STOP_NAMESPACES),
        R("mode", "a file's mode", try_mode, EROFS, STOP_NAMESPACES),
        R("owner", "a file's owner", try_owner, EROFS, STOP_NAMESPACES),
        R("times", "a file's times", try_times, EROFS, STOP_NAMESPACES),
        R("set-attribute", "a file's attributes", try_set_attribute, EROFS, STOP_NAMESPACES),
        I("write", "a file changed", try_write, EROFS),
        I("append", "a file longer", try_append, EROFS),
        I("truncate", "a file emptied", try_truncate, EROFS),
        I("create", "a new file", try_create, EROFS),
        I("mkdir", "a new directory", try_mkdir, EROFS),
        I("unlink", "a file gone", try_unlink, EROFS),
        I("rename", "a file taken away", try_rename_out, EXDEV),
        I("rename-over", "a file replaced", try_rename_over, EXDEV),
        I("link", "a name that may be written to", try_link_out, EXDEV),
        I("mode", "a file's mode", try_mode, EROFS),
        I("times", "a file's times", try_times, EROFS),
        I("exchange", "the whole directory exchanged", try_exchange_directory, EBUSY),
        I("move", "the whole directory away", try_move_directory, EBUSY),
        {.name = "private-attribute", .what = "a file's attributes, not granted", .try = try_get_attribute, .argument = "private",
         .error = ENOENT, .stops = STOP_NAMESPACES, .ids = "T010"},
};

const AttemptTable escape_files = {rows, sizeof(rows) / sizeof(rows[0])};
