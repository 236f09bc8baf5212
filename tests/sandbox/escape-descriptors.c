/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Descriptors that lead outside: inherited ones, and those that a service in a granted directory hands over. The service is the test;
 * it answers "directory" with one of "private", "file" with one that opens nothing (O_PATH) of the secret in it, and "move" after it
 * has moved the directory work/moving out of the grant. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "escape.h"

static long read_at(int directory, const char *path) {
        char c;
        int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -1 : read(fd, &c, 1);
}

static int ask(const char *what) {
        struct sockaddr_un u = {.sun_family = AF_UNIX};
        char text[16], control[CMSG_SPACE(sizeof(int))] = {};
        struct iovec v = {text, sizeof(text)};
        struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd = -1;

        strncpy(u.sun_path, place("work/service"), sizeof(u.sun_path) - 1);
        if (s < 0 || connect(s, (struct sockaddr *) &u, sizeof(u)) < 0 || send(s, what, strlen(what), 0) < 0 || recvmsg(s, &m, MSG_CMSG_CLOEXEC) <= 0)
                broken("service");
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_type == SCM_RIGHTS)
                memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        return fd;
}

static long try_inherited(const char *a) {
        (void) a;
        return fcntl((int) fixture_number("inherited"), F_GETFD);
}
static long try_inherited_open(const char *a) {
        (void) a;
        return read_at((int) fixture_number("inherited"), "secret");
}
static long try_variable(const char *a) {
        (void) a;
        errno = ENOENT;
        return getenv("ESCAPE_SECRET") ? 0 : -1;
}

static long try_passed(const char *path) {
        return read_at(ask("directory"), path);
}
static long try_passed_list(const char *a) {
        (void) a;
        return openat(ask("directory"), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
static long try_passed_entered(const char *a) {
        (void) a;
        if (fchdir(ask("directory")) < 0)
                broken("fchdir");
        return read_at(AT_FDCWD, "secret");
}
static long try_passed_create(const char *a) {
        (void) a;
        return openat(ask("directory"), "new-by-descriptor", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}
static long try_passed_unlink(const char *a) {
        (void) a;
        return unlinkat(ask("directory"), "unlink-2", 0);
}
static long try_passed_rename(const char *a) {
        (void) a;
        return renameat(ask("directory"), "rename-2", AT_FDCWD, place("work/renamed-by-descriptor"));
}
static long try_passed_link(const char *a) {
        (void) a;
        return linkat(ask("directory"), "link-2", AT_FDCWD, place("work/linked-by-descriptor"), 0);
}
static long try_passed_run(const char *a) {
        const char *const argv[] = {"program", "nothing", NULL}, *const none[] = {NULL};

        (void) a;
        int directory = ask("directory");
        pid_t pid = fork();
        if (pid == 0) {
                (void) syscall(SYS_execveat, directory, "program", argv, none, 0);
                _exit(errno);
        }
        return child_result(pid);
}
static long try_passed_reopen(const char *flags) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", ask("file"));
        return open(path, (int) number(flags) | O_CLOEXEC);
}
/* What is moved out of a mount has no way up. */
static long try_moved(const char *a) {
        (void) a;
        if (chdir(place("work/moving")) < 0)
                broken("chdir");
        (void) ask("move");
        return read_at(AT_FDCWD, "../private/secret");
}

#define PASSED(n, w, f, a) \
        {.name = n, .what = w ", by a directory that was handed over", .try = f, .argument = a, .error = EACCES, .stops = STOP_LANDLOCK, .ids = "T009 C056"}

static const Attempt rows[] = {
        {.name = "inherited", .what = "a descriptor of the caller's", .try = try_inherited, .error = EBADF, .stops = STOP_START, .ids = "C056"},
        {.name = "inherited-directory", .what = "a file by a directory of the caller's", .try = try_inherited_open, .error = EBADF,
         .stops = STOP_START, .ids = "C056"},
        {.name = "variable", .what = "a variable of the caller's", .try = try_variable, .error = ENOENT, .stops = STOP_START, .ids = "T020 C057"},
        PASSED("passed-read", "a file's text", try_passed, "secret"),
        PASSED("passed-above", "a file above", try_passed, "../private/secret"),
        PASSED("passed-list", "names", try_passed_list, NULL),
        PASSED("passed-entered", "a file below the working directory", try_passed_entered, NULL),
        PASSED("passed-create", "a new file", try_passed_create, NULL),
        PASSED("passed-unlink", "a file gone", try_passed_unlink, NULL),
        {.name = "passed-rename", .what = "a file taken away, by a directory that was handed over", .try = try_passed_rename, .error = EXDEV,
         .stops = STOP_LANDLOCK | STOP_NAMESPACES, .ids = "T009 C056"},
        {.name = "passed-link", .what = "another name for a file, by a directory that was handed over", .try = try_passed_link, .error = EXDEV,
         .stops = STOP_LANDLOCK | STOP_NAMESPACES, .ids = "T009 C056"},
        PASSED("passed-run", "a program", try_passed_run, NULL),
        {.name = "passed-reopen", .what = "a file by a descriptor that opens nothing", .try = try_passed_reopen, .argument = "0",
         .error = EACCES, .stops = STOP_LANDLOCK, .ids = "T009 C056"},
        {.name = "passed-reopen-write", .what = "the same, changed", .try = try_passed_reopen, .argument = "1",
         .error = EACCES, .stops = STOP_LANDLOCK, .ids = "T009 C056"},
        {.name = "moved-out", .what = "a file above a directory that was moved out of the grant", .try = try_moved, .error = ENOENT,
         .stops = STOP_NAMESPACES | STOP_LANDLOCK, .ids = "T010 C014"},
};

const AttemptTable escape_descriptors = {rows, sizeof(rows) / sizeof(rows[0])};
