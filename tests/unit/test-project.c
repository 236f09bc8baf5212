/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Projects by name, attacked by whoever may put things into projectRoot, and their owners' records. */

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/project-tally.h"
#include "test.h"

static char base[64], root_path[96], state_path[96];
static int root = -EBADF, state = -EBADF;

static const char *in_root(const char *name) {
        static char path[192];
        (void) snprintf(path, sizeof(path), "%s/%s", root_path, name);
        return path;
}

static void refused(const char *name, int r, const char *words) {
        Fault f = {};
        int got = project_open(root, name, &f);

        if (got != r || !f.text || !strstr(f.text, words))
                test_fail(__FILE__, __LINE__, "%s: %d, %s", name ?: "NULL", got, f.text ?: "no sentence");
        fault_done(&f);
}

static void test_names(void) {
        static const char *const good[] = {"a", "web", "Web-2", "x.y_z", "_x", "0"},
                          *const bad[] = {"", ".", "..", ".x", "-x", "a/b", "/", "/etc", "../etc", "a b", "a\nb", "caf\xc3\xa9", "a\\b", "a:b", "a%b"};
        char name[PROJECT_NAME_MAX + 2];

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                CHECK(!project_name_problem(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                CHECK(project_name_problem(bad[i]));
                refused(bad[i], -EINVAL, "the project");
        }
        CHECK(project_name_problem(NULL));
        memset(name, 'a', sizeof(name));
        name[PROJECT_NAME_MAX + 1] = 0;
        CHECK(project_name_problem(name));
        name[PROJECT_NAME_MAX] = 0;
        CHECK(!project_name_problem(name));
}

static void test_open(void) {
        struct stat st, expected;
        Fault f = {};

        CHECK_INT(mkdir(in_root("web"), 0700), 0);
        _cleanup_close_ int fd = project_open(root, "web", &f);
        CHECK(fd >= 0 && fstat(fd, &st) >= 0 && stat(in_root("web"), &expected) >= 0);
        CHECK(st.st_ino == expected.st_ino && st.st_dev == expected.st_dev);
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        refused("nothing", -ENOENT, "there is no project nothing");
}

static void test_attacks(void) {
        CHECK_INT(symlink("/etc", in_root("out")), 0);
        CHECK_INT(symlink("web", in_root("beside")), 0);
        CHECK_INT(symlink("/proc/self/root", in_root("magic")), 0);
        CHECK_INT(mkfifo(in_root("fifo"), 0600), 0);
        _cleanup_close_ int file = open(in_root("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        CHECK(file >= 0);
        refused("out", -EINVAL, "symbolic link");
        refused("beside", -EINVAL, "symbolic link");
        refused("magic", -EINVAL, "symbolic link");
        refused("fifo", -EINVAL, "no directory");
        refused("file", -EINVAL, "no directory");
}

/* In a mount namespace of its own, which an ordinary account has in a user namespace. */
static void test_mounts(void) {
        CHECK_INT(unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)), 0);
        CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        CHECK_INT(mkdir(in_root("mounted"), 0700), 0);
        CHECK_INT(mkdir(in_root("bound"), 0700), 0);
        CHECK_INT(mount("tmpfs", in_root("mounted"), "tmpfs", 0, NULL), 0);
        /* Of the same file system: the device does not tell it. */
        CHECK_INT(mount(state_path, in_root("bound"), NULL, MS_BIND, NULL), 0);
        safe_close(root);
        root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* as this namespace has it */
        refused("mounted", -EINVAL, "mount point");
        refused("bound", -EINVAL, "mount point");
        CHECK_INT(umount2(in_root("mounted"), MNT_DETACH), 0);
        CHECK_INT(umount2(in_root("bound"), MNT_DETACH), 0);
}

static void root_refused(const char *path, const char *words) {
        Fault f = {};
        int fd = project_root_open(path, state_path, &f);

        if (fd >= 0 || f.code != ERROR_CONFIGURATION || !strstr(f.text, words))
                test_fail(__FILE__, __LINE__, "%s: %s", path, f.text ?: "opened");
        fault_done(&f);
}

static void test_root(void) {
        char inside[128];
        Fault f = {};

        int fd = project_root_open(root_path, state_path, &f);
        CHECK(fd >= 0);
        safe_close(fd);
        root_refused("/nowhere/at/all", "cannot be opened");
        root_refused(state_path, "lie in each other");
        root_refused(base, "lie in each other");
        (void) snprintf(inside, sizeof(inside), "%s/projects", state_path);
        CHECK_INT(mkdir(inside, 0700), 0);
        root_refused(inside, "lie in each other");
        CHECK_INT(rmdir(inside), 0);
        CHECK_INT(chmod(root_path, 0777), 0);
        root_refused(root_path, "chmod o-w");
        CHECK_INT(chmod(root_path, 0755), 0);
}

static void test_owners(void) {
        char path[160];
        uid_t owner = 7;
        Fault f = {};

        _cleanup_close_ int owners = project_owners_open(state);
        CHECK(owners >= 0);
        CHECK_INT(project_owner(owners, "web", &owner, &f), -ENOENT);
        CHECK(!f.text && owner == 7);
        CHECK_INT(project_claim(owners, "web", 1000), 0);
        CHECK_INT(project_owner(owners, "web", &owner, &f), 0);
        CHECK_INT(owner, 1000);
        CHECK_INT(project_claim(owners, "../x", 1000), -EINVAL);
        /* Damaged by hand, or by a disk: nobody's. */
        (void) snprintf(path, sizeof(path), "%s/.projects/web", state_path);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        CHECK(fd >= 0 && write_all(fd, "{\"v\":1,\"owner\":-1}", 18) >= 0);
        CHECK(project_owner(owners, "web", &owner, &f) < 0);
        CHECK(strstr(f.text, "damaged") && strstr(f.text, ".projects/web"));
        fault_done(&f);
        _cleanup_close_ int again = project_owners_open(state);
        CHECK(again >= 0);
        /* Why it cannot be written down is what the file system says of it, a full one too. */
        CHECK_INT(unlinkat(owners, "web", 0), 0);
        CHECK_INT(unlinkat(state, ".projects", AT_REMOVEDIR), 0);
        CHECK_INT(project_claim(owners, "web", 1000), -ENOENT);
}

static size_t tallied(ProjectTally *t, int owners, uid_t uid) {
        size_t n = 1000;

        CHECK_INT(project_tally_count(t, owners, uid, &n), 0);
        return n;
}

static void test_tally(void) {
        ProjectTally t = {};
        char name[32];

        _cleanup_close_ int owners = project_owners_open(state);
        CHECK(owners >= 0);
        size_t before = tallied(&t, owners, 1000);
        for (unsigned i = 0; i < 20; i++) {
                (void) snprintf(name, sizeof(name), "tally%u", i);
                CHECK_INT(project_claim(owners, name, i % 4 == 0 ? 4000000000U : 1000), 0);
                CHECK_INT(project_tally_add(&t, owners, i % 4 == 0 ? 4000000000U : 1000), 0);
        }
        CHECK_INT(tallied(&t, owners, 1000), before + 15);
        CHECK_INT(tallied(&t, owners, 4000000000U), 5);
        CHECK_INT(tallied(&t, owners, 1), 0);
        /* Somebody else has changed it, and one is damaged, and one is no project. */
        CHECK_INT(unlinkat(owners, "tally1", 0), 0);
        CHECK_INT(close(openat(owners, "tally2", O_WRONLY | O_TRUNC | O_CLOEXEC)), 0);
        CHECK_INT(close(openat(owners, ".tally2.new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
        /* A file system's clock ticks some hundred times a second: this may all have been in the tick of the last claim. */
        CHECK_INT(futimens(owners, (const struct timespec[]){{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1}}), 0);
        CHECK_INT(tallied(&t, owners, 1000), before + 13);
        CHECK_INT(tallied(&t, owners, 4000000000U), 5);
        project_tally_done(&t);
}

int main(void) {
        char command[96];

        strcpy(base, "/tmp/errand-project-XXXXXX");
        if (!mkdtemp(base))
                return 1;
        (void) snprintf(root_path, sizeof(root_path), "%s/root", base);
        (void) snprintf(state_path, sizeof(state_path), "%s/state", base);
        if (mkdir(root_path, 0755) < 0 || mkdir(state_path, 0700) < 0)
                return 1;
        root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        state = open(state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        RUN(test_names, "a project's name is a plain word");
        RUN(test_open, "a project is a directory of projectRoot");
        RUN(test_attacks, "C014: a link, a pipe and a file are no project, wherever they lead");
        RUN(test_root, "projectRoot and the state lie apart, and nobody else makes projects");
        RUN(test_owners, "who owns a project is kept, and what is damaged is nobody's");
        RUN(test_mounts, "a mount point is no project, also of the same file system");
        RUN(test_tally, "C204: how many projects each account has is counted once, and again when somebody else changed them");
        (void) snprintf(command, sizeof(command), "rm -rf %s", base);
        (void) !system(command);
        return TEST_END();
}
