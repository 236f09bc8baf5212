/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "shared/cgroup.h"
#include "test.h"

static void test_parse(void) {
        static const struct {
                const char *text, *path; /* NULL: -ENODATA */
        } table[] = {
                {"0::/\n", "/"},
                {"0::/user.slice/user-1.slice/user@1.service/errand.slice/errand-session-a.scope\n",
                 "/user.slice/user-1.slice/user@1.service/errand.slice/errand-session-a.scope"},
                {"12:memory:/a\n1:name=systemd:/b\n0::/c", "/c"},
                {"0::/with space\n", "/with space"},
                {"0::/gone (deleted)\n", NULL},
                {"10::/a\n", NULL},
                {"1:name=0::/x:/b\n", NULL},
                {"0::\n", NULL},
                {"0::relative\n", NULL},
                {"\n", NULL},
                {"", NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *path = NULL;
                CHECK_INT(cgroup_parse(table[i].text, &path), table[i].path ? 0 : -ENODATA);
                if (table[i].path)
                        CHECK_STR(path, table[i].path);
                else
                        CHECK(!path);
        }
}

static void test_unit(void) {
        CHECK(cgroup_is_unit("/a.slice/b.scope", "b.scope"));
        CHECK(cgroup_is_unit("/b.scope", "b.scope"));
        CHECK(!cgroup_is_unit("/b.scope/payload", "b.scope"));
        CHECK(!cgroup_is_unit("/xb.scope", "b.scope"));
        CHECK(!cgroup_is_unit("/", "b.scope"));
        CHECK(!cgroup_is_unit("b.scope", "b.scope"));
}

static void test_oom_kills(void) {
        uint64_t n = 0;

        CHECK_INT(cgroup_parse_oom_kills("low 0\nhigh 0\nmax 31\noom 4\noom_kill 3\noom_group_kill 0\n", &n), 0);
        CHECK_INT(n, 3);
        CHECK_INT(cgroup_parse_oom_kills("oom_kill 7", &n), 0);
        CHECK_INT(n, 7);
        CHECK_INT(cgroup_parse_oom_kills("low 0\noom 4\n", &n), -ENODATA);
        CHECK_INT(cgroup_parse_oom_kills("oom_kill x\n", &n), -ENODATA);
        CHECK_INT(cgroup_parse_oom_kills("oom_kill -1\n", &n), -ENODATA);
        CHECK_INT(cgroup_parse_oom_kills("", &n), -ENODATA);
        CHECK_INT(n, 7);
}

static void test_limits(void) {
        static const struct {
                const char *text;
                uint64_t most;
                bool holds;
        } table[] = {
                {"4096\n", 4096, true},  {"4096\n", 5000, true}, {"4097\n", 4096, false}, {"0\n", 0, true},    {"max\n", UINT64_MAX - 1, false},
                {"", 1, false},          {"x\n", 1, false},      {"-1\n", 1, false},      {"18446744073709551615\n", UINT64_MAX - 1, false},
                {"50000 100000\n", 500000, true}, {"50000 100000\n", 499999, false}, {"max 100000\n", 500000, false},
                {"200000 100000\n", 2000000, true}, {"50000 0\n", 500000, false}, {"50000 x\n", 500000, false},
        };
        char directory[] = "/tmp/errand-cgroup-XXXXXX";

        CHECK(mkdtemp(directory));
        _cleanup_close_ int group = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(group >= 0);
        CHECK(!cgroup_limit_holds(group, "limit", UINT64_MAX - 1));
        CHECK(!cgroup_limit_holds(-ENODEV, "limit", UINT64_MAX - 1));
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_close_ int fd = openat(group, "limit", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                CHECK_INT(write(fd, table[i].text, strlen(table[i].text)), strlen(table[i].text));
                CHECK_INT(cgroup_limit_holds(group, "limit", table[i].most), table[i].holds);
        }
        CHECK_INT(unlinkat(group, "limit", 0), 0);
        CHECK_INT(rmdir(directory), 0);
}

static void test_own(void) {
        _cleanup_free_ char *path = NULL;

        int r = cgroup_of_process(getpid(), &path);
        CHECK(r == -ENODATA || (r == 0 && path[0] == '/')); /* a kernel without the unified hierarchy */
        CHECK_INT(cgroup_of_process(INT32_MAX, &path), -ENOENT);
        CHECK_INT(cgroup_kill(-EBADF, "."), -ENOENT);
}

int main(void) {
        RUN(test_parse, "the group of a process, whatever other hierarchies there are");
        RUN(test_unit, "the unit that a group is");
        RUN(test_oom_kills, "C085: how many were killed for want of memory");
        RUN(test_limits, "C082: whether the kernel holds a limit, and no wider");
        RUN(test_own, "a process that is there, and one that is not");
        return TEST_END();
}
