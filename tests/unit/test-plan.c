/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/home.h"
#include "bailey/planner.h"
#include "basic/path.h"
#include "policy-fixture.h"

static const Network isolated = {.mode = NETWORK_ISOLATED, .denied = true};

static Plan *plan_of(const char *text) {
        static char *const argv[] = {(char *) "./program", (char *) "a b", NULL};
        Policy *p = resolve(text);
        Plan *plan = NULL;

        CHECK(p);
        CHECK_INT(plan_new(p, argv, &isolated, &plan), 0);
        policy_free(p);
        return plan;
}

/* The only step of that type at that path; NULL when there is none. */
static const PlanStep *step_at(const Plan *plan, StepType type, const char *target) {
        const PlanStep *found = NULL;

        for (size_t i = 0; i < plan->n_steps; i++)
                if (plan->steps[i].type == type && streq(plan->steps[i].target, target)) {
                        CHECK(!found);
                        found = &plan->steps[i];
                }
        return found;
}

static unsigned access_at(const Plan *plan, const char *path) {
        unsigned rights = 0;
        for (size_t i = 0; i < plan->n_accesses; i++)
                if (streq(plan->accesses[i].path, path))
                        rights |= plan->accesses[i].rights;
        return rights;
}

static char *print(const Plan *plan) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        CHECK(f && plan_print(plan, f) == 0 && fclose(f) == 0);
        return text;
}

static bool mounts(const PlanStep *s) {
        return s->type != STEP_DIRECTORY && s->type != STEP_SYMLINK;
}

/* Nothing is put under a place after the place was made over it. */
static void check_order(const Plan *plan) {
        for (size_t i = 0; i < plan->n_steps; i++)
                for (size_t k = i + 1; k < plan->n_steps; k++)
                        if (mounts(&plan->steps[k]) && !streq(plan->steps[i].target, plan->steps[k].target))
                                CHECK(!path_beneath(plan->steps[i].target, plan->steps[k].target));
}

static void test_floor(void) {
        _cleanup_(plan_freep) Plan *plan = plan_of(NULL);
        struct stat st;

        check_order(plan);
        CHECK(step_at(plan, STEP_PROC, "/proc") && step_at(plan, STEP_SYSFS, "/sys") && step_at(plan, STEP_DEVPTS, "/dev/pts"));
        CHECK(step_at(plan, STEP_TMPFS, "/tmp") && step_at(plan, STEP_TMPFS, "/dev/shm"));
        CHECK_INT(step_at(plan, STEP_TMPFS, "/tmp")->mode, 01777);
        CHECK_STR(step_at(plan, STEP_SYMLINK, "/dev/ptmx")->source, "pts/ptmx");
        CHECK_STR(step_at(plan, STEP_SYMLINK, "/dev/fd")->source, "/proc/self/fd");
        CHECK_INT(step_at(plan, STEP_BIND, "/usr")->flags, STEP_EXECUTABLE);
        CHECK_INT(step_at(plan, STEP_BIND, "/etc")->flags, 0);
        CHECK_INT(stat("/usr", &st), 0);
        CHECK(step_at(plan, STEP_BIND, "/usr")->inode == st.st_ino && step_at(plan, STEP_BIND, "/usr")->device == st.st_dev);
        CHECK_INT(step_at(plan, STEP_DEVICE, "/dev/null")->flags, STEP_WRITABLE);
        CHECK_INT(step_at(plan, STEP_DEVICE, "/dev/zero")->flags, 0);
        CHECK_INT(step_at(plan, STEP_BIND, at("program"))->flags, STEP_EXECUTABLE);
        if (lstat("/bin", &st) == 0 && S_ISLNK(st.st_mode))
                CHECK(step_at(plan, STEP_SYMLINK, "/bin") && !step_at(plan, STEP_BIND, "/bin"));
        /* For whoever could read it. */
        CHECK((faccessat(AT_FDCWD, "/etc/shadow", R_OK, AT_EACCESS) == 0) == !!step_at(plan, STEP_COVER, "/etc/shadow"));
        CHECK_STR(plan->executable, at("program"));
        CHECK_STR(plan->argv[0], "./program");
        CHECK_STR(plan->argv[1], "a b");
        CHECK_STR(plan->working_directory, fixture);
        CHECK(!plan->nested_deny && !plan->nested_read_only);
        CHECK_INT(access_at(plan, "/"), ACCESS_LIST);
        CHECK_INT(access_at(plan, "/proc"), ACCESS_READ);
        CHECK_INT(access_at(plan, "/tmp"), ACCESS_READ | ACCESS_WRITE | ACCESS_EXECUTE);
        CHECK_INT(access_at(plan, "/dev/tty"), ACCESS_READ | ACCESS_WRITE | ACCESS_IOCTL);
        CHECK_INT(access_at(plan, "/dev/null"), ACCESS_READ | ACCESS_WRITE);
        CHECK_INT(access_at(plan, at("real")), 0);
}

static void test_accounts(void) {
        _cleanup_(plan_freep) Plan *plan = plan_of(NULL);
        char expected[512];

        (void) snprintf(expected, sizeof(expected),
                        "root:x:0:0:root:/root:/usr/sbin/nologin\nyou:x:1000:1000::%s:/bin/sh\n"
                        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", at("data/bailey/program/home"));
        CHECK_STR(step_at(plan, STEP_FILE, "/etc/passwd")->content, expected);
        CHECK_STR(step_at(plan, STEP_FILE, "/etc/group")->content, "root:x:0:\nyou:x:1000:\nnogroup:x:65534:\n");

        _cleanup_(plan_freep) Plan *bare = plan_of("[filesystem]\nreset = true\nexecute = [\"program\"]\n");
        check_order(bare);
        CHECK(step_at(bare, STEP_DIRECTORY, "/etc") && step_at(bare, STEP_FILE, "/etc/passwd"));
        CHECK(!step_at(bare, STEP_BIND, "/usr") && !step_at(bare, STEP_PROC, "/proc"));
}

static void test_deterministic(void) {
        static const char text[] = "[filesystem]\nwrite = [\"W\"]\nread = [\"/\"]\ndeny = [\"W/secret\"]\n";
        make_directory("W/secret");
        _cleanup_(plan_freep) Plan *one = plan_of(text), *two = plan_of(text);
        _cleanup_free_ char *a = print(one), *b = print(two);
        CHECK_STR(a, b);
        check_order(one);
}

static void test_nested(void) {
        make_directory("W/secret");
        make_directory("W/ro/rw");
        _cleanup_(plan_freep) Plan *plan = plan_of("[filesystem]\nwrite = [\"W\", \"W/ro/rw\"]\ndeny = [\"W/secret\"]\nread_only = [\"W/ro\"]\n");

        check_order(plan);
        CHECK_INT(step_at(plan, STEP_BIND, at("W"))->flags, STEP_WRITABLE);
        CHECK(step_at(plan, STEP_COVER, at("W/secret")));
        CHECK(step_at(plan, STEP_READ_ONLY, at("W/ro")));
        CHECK_INT(step_at(plan, STEP_BIND, at("W/ro/rw"))->flags, STEP_WRITABLE);
        CHECK(plan->nested_deny && plan->nested_read_only);
        CHECK_INT(access_at(plan, at("W")), ACCESS_READ | ACCESS_WRITE);
        CHECK_INT(access_at(plan, at("W/secret")), 0);
}

static void test_grant_in_deny(void) {
        make_directory("W/secret/open/deep");
        _cleanup_(plan_freep) Plan *plan =
                plan_of("[filesystem]\nwrite = [\"W\"]\ndeny = [\"W/secret\"]\nread = [\"W/secret/open/deep\"]\n");

        check_order(plan);
        CHECK(!step_at(plan, STEP_COVER, at("W/secret")));
        const PlanStep *cover = step_at(plan, STEP_TMPFS, at("W/secret"));
        CHECK(cover && cover->flags == 0 && cover->mode == 0111);
        CHECK(step_at(plan, STEP_DIRECTORY, at("W/secret/open")));
        CHECK(step_at(plan, STEP_BIND, at("W/secret/open/deep")));
}

static void test_unneeded(void) {
        make_directory("W/more");
        _cleanup_(plan_freep) Plan *plan = plan_of("[filesystem]\nread = [\"W\", \"W/more\"]\ndeny = [\"real/x\", \"/root\"]\n");

        CHECK(!step_at(plan, STEP_BIND, at("W/more")) && !step_at(plan, STEP_COVER, "/root"));
        CHECK(!plan->nested_deny);
}

static void test_root(void) {
        _cleanup_(plan_freep) Plan *plan = plan_of("[filesystem]\nwrite = [\"/\"]\ndeny = [\"W/more\"]\n");

        check_order(plan);
        CHECK(!step_at(plan, STEP_BIND, "/") && !step_at(plan, STEP_BIND, "/dev") && !step_at(plan, STEP_BIND, "/tmp"));
        CHECK(step_at(plan, STEP_TMPFS, "/tmp") && step_at(plan, STEP_DEVICE, "/dev/null") && step_at(plan, STEP_PROC, "/proc"));
        CHECK_INT(step_at(plan, STEP_BIND, "/usr")->flags, STEP_EXECUTABLE);
        struct stat st;
        if (lstat("/var", &st) == 0 && S_ISDIR(st.st_mode))
                CHECK_INT(step_at(plan, STEP_BIND, "/var")->flags, STEP_WRITABLE);
        if (stat("/run/dbus", &st) == 0)
                CHECK(step_at(plan, STEP_COVER, "/run/dbus"));
}

static void test_many_denies(void) {
        char text[16384] = "[filesystem]\nwrite = [\"many\"]\ndeny = [";
        make_directory("many");
        for (unsigned i = 0; i < 300; i++) {
                char name[32];
                (void) snprintf(name, sizeof(name), "many/f%u", i);
                make_file(name, "", 0644);
                (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "\"%s\", ", name);
        }
        (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "]\n");
        _cleanup_(plan_freep) Plan *plan = plan_of(text);
        unsigned covers = 0;
        for (size_t i = 0; i < plan->n_steps; i++)
                covers += plan->steps[i].type == STEP_COVER && path_beneath(plan->steps[i].target, at("many"));
        CHECK_INT(covers, 300);
}

static void test_home(void) {
        Policy *p = resolve(NULL);
        CHECK(p);
        CHECK_INT(home_make(p), 0);
        struct stat st;
        CHECK_INT(stat(p->home, &st), 0);
        CHECK_INT(st.st_mode & 0777, 0700);
        CHECK_INT(stat(at("data/bailey"), &st), 0);
        CHECK_INT(st.st_mode & 0777, 0700);
        policy_free(p);

        /* HOME may name another place; the home is shown there. */
        make_directory("real/proj");
        _cleanup_(plan_freep) Plan *plan =
                plan_of("[filesystem]\nwrite = [\"real/proj\"]\n[env]\npass = [\"HOME\"]\n");
        check_order(plan);
        const PlanStep *home = step_at(plan, STEP_BIND, at("real"));
        CHECK(home && home->flags == (STEP_WRITABLE | STEP_EXECUTABLE));
        CHECK_STR(home->source, at("data/bailey/program/home"));
        CHECK(step_at(plan, STEP_BIND, at("real/proj")));
        CHECK(strstr(step_at(plan, STEP_FILE, "/etc/passwd")->content, at("real")));
}

static void test_home_link(void) {
        Policy *p = resolve(NULL);
        CHECK(p);
        CHECK_INT(home_make(p), 0);
        /* A session cannot do this to its own home, but one that was granted more could. */
        CHECK_INT(rmdir(at("data/bailey/program/home")), 0);
        make_link(at("real"), "data/bailey/program/home");
        Plan *plan = NULL;
        CHECK_INT(plan_new(p, (char *[]){(char *) "x", NULL}, &isolated, &plan), -ELOOP);
        policy_free(p);
        CHECK(!resolve(NULL));
        CHECK(listed(findings.errors, "the real home"));
        make_directory("private");
        make_link(at("private"), "data/bailey/program/home");
        p = resolve(NULL);
        CHECK(p);
        CHECK(home_make(p) < 0);
        policy_free(p);
        CHECK_INT(unlink(at("data/bailey/program/home")), 0);
}

static void test_changed(void) {
        make_directory("swap");
        Policy *p = resolve("[filesystem]\nread = [\"swap\"]\n");
        struct stat before;
        Plan *plan = NULL;

        CHECK(p);
        CHECK_INT(stat(at("swap"), &before), 0);
        CHECK(rmdir(at("swap")) == 0);
        make_link(at("real"), "swap");
        CHECK_INT(plan_new(p, (char *[]){(char *) "x", NULL}, &isolated, &plan), 0);
        CHECK_INT(step_at(plan, STEP_BIND, at("swap"))->inode, before.st_ino);
        plan_free(plan);
        policy_free(p);
}

/* Directories between a writable one and something protected are mounts of their own, in order, with the rights around them. */
static void test_anchors(void) {
        static const char *const anchors[] = {"A", "A/a", "A/a/b", "A/a/b/c", "A/a/r", "A/x/y/z"};
        static const char *const others[] = {"A/a/secret", "A/a/b/bin", "A/free", "A/x", "A/a/none"};
        make_directory("A/a/secret");
        make_directory("A/a/b/bin");
        make_directory("A/a/b/c/d");
        make_directory("A/a/r/s");
        make_directory("A/x/y/z/q");
        make_directory("A/free");
        _cleanup_(plan_freep) Plan *plan = plan_of("[filesystem]\nwrite = [\"A\", \"A/x/y\", \"A/free\"]\nexecute = [\"A/a/b/bin\"]\n"
                                                   "read = [\"A/a/r/s\"]\nread_only = [\"A/a/b/c/d\"]\n"
                                                   "deny = [\"A/a/secret\", \"A/x\", \"A/x/y/z/q\", \"A/a/none/there\"]\n");
        check_order(plan);
        for (size_t i = 0; i < ELEMENTSOF(anchors); i++) {
                const PlanStep *s = step_at(plan, STEP_BIND, at(anchors[i]));
                CHECK(s && s->flags == STEP_WRITABLE && s->inode);
        }
        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                const PlanStep *s = step_at(plan, STEP_BIND, at(others[i]));
                CHECK(!s || !(s->flags & STEP_WRITABLE));
        }
        CHECK(step_at(plan, STEP_COVER, at("A/a/secret"))->inode && step_at(plan, STEP_COVER, at("A/x/y/z/q"))->inode);
        CHECK(step_at(plan, STEP_TMPFS, at("A/x"))->inode && step_at(plan, STEP_READ_ONLY, at("A/a/b/c/d"))->inode);
}

static void test_pins(void) {
        struct stat st;

        make_directory("L/d");
        make_file("L/target", "", 0644);
        make_link("second", "L/d/first");
        make_link("../target", "L/d/second");
        make_link("nowhere", "L/d/dangling");
        _cleanup_(plan_freep) Plan *plan = plan_of("[filesystem]\nwrite = [\"L\"]\nread_only = [\"L/d/first\"]\ndeny = [\"L/d/dangling\"]\n");
        static const char *const links[] = {"L/d/first", "L/d/second", "L/d/dangling"};
        for (size_t i = 0; i < ELEMENTSOF(links); i++) {
                const PlanStep *s = step_at(plan, STEP_READ_ONLY, at(links[i]));
                CHECK(s && lstat(at(links[i]), &st) == 0 && s->inode == st.st_ino && s->device == st.st_dev);
        }
        CHECK(step_at(plan, STEP_READ_ONLY, at("L/target")) && step_at(plan, STEP_BIND, at("L/d")));
}

static void test_policy_file(void) {
        _cleanup_(plan_freep) Plan *plan = plan_of("[filesystem]\nwrite = [\".\"]\n");
        CHECK(step_at(plan, STEP_READ_ONLY, at("p.toml")));
        CHECK(step_at(plan, STEP_READ_ONLY, at("config/bailey")));
        /* The home shows in a place that is covered but for it. */
        CHECK(step_at(plan, STEP_TMPFS, at("data/bailey")));
        CHECK(step_at(plan, STEP_DIRECTORY, at("data/bailey/program")));
        CHECK(step_at(plan, STEP_BIND, at("data/bailey/program/home")));
}

int main(void) {
        fixture_make();
        RUN(test_floor, "Q003 Q005 Q025: the plan of the floor: skeleton, devices, private places, the target");
        RUN(test_accounts, "C062: passwd and group hold the own entry, root and nobody, with or without /etc");
        RUN(test_deterministic, "a plan is the same every time");
        RUN(test_nested, "C010 C020: a deny is covered, an island read-only, a deeper grant mounted on top");
        RUN(test_grant_in_deny, "C030: a grant inside a denied directory stands in an unreadable place");
        RUN(test_anchors, "C020: directories above something protected are mounts");
        RUN(test_unneeded, "what is shown already needs no step, what is not shown no cover");
        RUN(test_root, "C028: a grant of / leaves /dev, /proc, /sys and /tmp bailey's own");
        RUN(test_many_denies, "C025: three hundred denied files are three hundred covers");
        RUN(test_home, "Q007 Q025: the home is made 0700 and mounted where HOME says");
        RUN(test_home_link, "C018: a home that became a link is refused");
        RUN(test_changed, "C018: a step names the inode that was resolved, whatever the path is now");
        RUN(test_pins, "C011 C012: a link on the way to something protected is mounted over itself");
        RUN(test_policy_file, "C109: the file in force, the configuration and other homes are out of reach of a wide grant");
        findings_done(&findings);
        return TEST_END();
}
