/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "launch/disk-usage.h"
#include "test.h"

#define BLOCK 65536U
#define SLACK (64U * 1024U) /* of directories, and of what a file system keeps beside a file */

static char directory[] = "/tmp/test-disk-usage-XXXXXX";
static int top = -EBADF;

static void fill(int at, const char *name, size_t size) {
        static char data[BLOCK];
        _cleanup_close_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        CHECK(fd >= 0);
        memset(data, 'x', sizeof(data));
        for (size_t i = 0; i < size; i += BLOCK)
                CHECK_INT(write(fd, data, BLOCK), BLOCK);
}

static void begin(void) {
        strcpy(directory + sizeof(directory) - 7, "XXXXXX");
        CHECK(mkdtemp(directory));
        top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(top >= 0);
}

static void end(void) {
        char command[128];

        (void) snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", directory, directory);
        CHECK_INT(system(command), 0);
        top = safe_close(top);
}

static DiskUsage measure(void) {
        DiskUsage usage = {};

        CHECK_INT(disk_usage_measure(top, &usage), 0);
        return usage;
}

static bool about(uint64_t bytes, uint64_t wanted) {
        return bytes >= wanted && bytes <= wanted + SLACK;
}

static void test_links(void) {
        begin();
        CHECK_INT(mkdirat(top, "d", 0700), 0);
        fill(top, "file", 8 * BLOCK);
        CHECK(about(measure().bytes, 8 * BLOCK));
        CHECK_INT(linkat(top, "file", top, "d/one", 0), 0);
        CHECK_INT(linkat(top, "file", top, "two", 0), 0);
        CHECK(about(measure().bytes, 8 * BLOCK - 3));
        CHECK_INT(measure().entries, 4);
        CHECK_INT(symlinkat("/usr", top, "usr"), 0);
        CHECK_INT(symlinkat("..", top, "d/up"), 0);
        CHECK_INT(symlinkat("file", top, "file2"), 0);
        CHECK(about(measure().bytes, 8 * BLOCK - 3));
        CHECK_INT(measure().entries, 7);
        CHECK(measure().whole);
        end();
}

static void test_holes(void) {
        begin();
        _cleanup_close_ int fd = openat(top, "hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK_INT(ftruncate(fd, INT64_C(1) << 40), 0);
        CHECK(measure().bytes < SLACK);
        CHECK_INT(mkfifoat(top, "fifo", 0600), 0); /* nobody writes into it: what opened it would wait */
        CHECK_INT(measure().entries, 2);
        end();
}

static void test_deep(void) {
        _cleanup_close_ int at = -EBADF;

        begin();
        at = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (unsigned i = 0; i < DISK_DEPTH_MAX + 10; i++) {
                CHECK_INT(mkdirat(at, "d", 0700), 0);
                int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                safe_close(at);
                at = next;
                if (i == DISK_DEPTH_MAX - 2)
                        fill(at, "seen", 4 * BLOCK);
        }
        fill(at, "unseen", 64 * BLOCK);
        DiskUsage usage = measure();
        CHECK(!usage.whole);
        CHECK(usage.bytes >= 4 * BLOCK && usage.bytes < 64 * BLOCK);
        end();
}

/* As the launcher has it done: in a child, which a session's account is. */
static void test_closed(void) {
        begin();
        CHECK_INT(mkdirat(top, "closed", 0700), 0);
        _cleanup_close_ int closed = openat(top, "closed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fill(closed, "file", 8 * BLOCK);
        CHECK_INT(fchmodat(top, "closed", 0, 0), 0);
        CHECK_INT(fchmod(top, 0755), 0);
        if (geteuid() == 0) {
                CHECK_INT(fchown(closed, 65534, 65534), 0);
                CHECK_INT(fchown(top, 65534, 65534), 0);
        }
        pid_t pid = fork();
        if (pid == 0) {
                DiskUsage usage = {};
                if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
                        _exit(2);
                pid_t probe = fork();
                if (probe == 0)
                        _exit(unshare(CLONE_NEWUSER) < 0);
                int namespaces = 1;
                (void) waitpid(probe, &namespaces, 0);
                disk_usage_prepare();
                if (disk_usage_measure(top, &usage) < 0)
                        _exit(3);
                /* Where there are no user namespaces it says that there is more. */
                _exit(usage.whole != (namespaces == 0) ? 4 : !usage.whole || about(usage.bytes, 8 * BLOCK) ? 0 : 5);
        }
        int status;
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(status, 0);
        end();
}

int main(void) {
        RUN(test_links, "a file with three links counts once, and links lead nowhere");
        RUN(test_holes, "a hole takes nothing, and nothing is opened that is no directory");
        RUN(test_deep, "what is deeper than is looked at is said to be there");
        RUN(test_closed, "a directory that its own account has closed is looked into");
        return TEST_END();
}
