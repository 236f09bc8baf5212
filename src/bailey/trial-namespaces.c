/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/control.h"
#include "bailey/mounts.h"
#include "bailey/namespaces.h"
#include "bailey/network-namespace.h"
#include "bailey/trial.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"

/* ---- one kind of namespace, made alone ---- */

static int become_owner(uid_t uid, gid_t gid) {
        char line[64];

        if (unshare(CLONE_NEWUSER) < 0)
                return -errno;
        int r = write_file_once("/proc/self/setgroups", "deny");
        if (r < 0)
                return r;
        (void) snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
        r = write_file_once("/proc/self/uid_map", line);
        if (r < 0)
                return r;
        (void) snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
        return write_file_once("/proc/self/gid_map", line);
}

/* A kernel may let the namespace be made and give no capability in it, so something is done that needs one. */
static int use_namespace(int flag) {
        int status;

        switch (flag) {
        case CLONE_NEWNS:
                return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
        case CLONE_NEWUTS:
                return sethostname("bailey", STRLEN("bailey")) < 0 ? -errno : 0;
        case CLONE_NEWPID: {
                pid_t pid = fork();
                if (pid == 0)
                        _exit(getpid() == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
                if (pid < 0 || waitpid(pid, &status, 0) < 0)
                        return -errno;
                return status == 0 ? 0 : -EPROTO;
        }
        default:
                return 0;
        }
}

void trial_namespace(const Mechanism *m, Outcome *ret) {
        uid_t uid = geteuid();
        gid_t gid = getegid();

        int r = prctl(PR_SET_DUMPABLE, 1) < 0 ? -errno : become_owner(uid, gid);
        if (r < 0) {
                outcome_fails(ret, r, "a user namespace cannot be made and used");
                return;
        }
        if (m->argument != CLONE_NEWUSER && unshare(m->argument) < 0)
                outcome_fails(ret, errno, "it cannot be made");
        else if ((r = use_namespace(m->argument)) < 0)
                outcome_fails(ret, r, "it can be made and not used");
        else
                outcome_works(ret, "%s", "");
}

/* ---- all of them, as a run makes them ---- */

void trial_inside(void (*inner)(const Mechanism *m, int limits, Outcome *ret), const Mechanism *m, Outcome *ret) {
        uid_t uid = geteuid();
        gid_t gid = getegid();
        int pair[2], sockets[2], pidfd = -EBADF;

        if (pipe2(pair, O_CLOEXEC) < 0) {
                outcome_fails(ret, errno, "pipe");
                return;
        }
        int r = control_new(sockets);
        if (r < 0) {
                outcome_fails(ret, r, "socketpair");
                return;
        }
        pid_t pid = namespaces_clone(false, -EBADF, &pidfd);
        if (pid == 0) {
                Failure f = {};
                NetworkNamespace network = {.control = sockets[0], .fd = -EBADF};
                int limits = -EBADF;

                *ret = (Outcome){.tried = true, .failure.stage = _STAGE_INVALID};
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || namespaces_set_up(uid, gid, &limits, &f) < 0 ||
                    network_namespace_enter(&network, &f) < 0 || network_namespace_raise(&f) < 0)
                        outcome_fails_at(ret, &f);
                else
                        inner(m, limits, ret);
                _exit(write_all(pair[1], ret, sizeof(*ret)) < 0);
        }
        Failure f = {};
        r = pid < 0 ? failure_set(&f, STAGE_NAMESPACES, pid, "%s", "") : network_namespace_give(pidfd, sockets[1], &f);
        if (r < 0 && pid > 0)
                (void) kill(pid, SIGKILL);
        safe_close(pair[1]);
        safe_close(sockets[0]);
        safe_close(sockets[1]);
        safe_close(pidfd);
        if (r < 0)
                outcome_fails_at(ret, &f);
        else if (read_all(pair[0], ret, sizeof(*ret)) != sizeof(*ret)) {
                *ret = (Outcome){.tried = true, .failure.stage = _STAGE_INVALID};
                outcome_fails(ret, 0, "the process that tried it ended");
        }
        safe_close(pair[0]);
}

static void nothing_more(_unused_ const Mechanism *m, _unused_ int limits, Outcome *ret) {
        outcome_works(ret, "%s", "");
}

void trial_namespaces(const Mechanism *m, Outcome *ret) {
        trial_inside(nothing_more, m, ret);
}

/* ---- a new root in them ---- */

/* Only the own process, and the one that looks, may be in sight. */
static void look_at_proc(Outcome *ret) {
        unsigned n = 0;

        DIR *d = opendir("/proc");
        for (const struct dirent *e; d && (e = readdir(d));)
                n += ascii_digit(e->d_name[0]);
        if (d)
                closedir(d);
        if (n == 1)
                outcome_works(ret, "%s", "");
        else
                outcome_fails(ret, 0, "a fresh /proc shows %u processes, and there is one", n);
}

static void look_at_sysfs(GapSet gaps, Outcome *ret) {
        if (gaps & ((GapSet) 1 << GAP_SYSFS))
                outcome_fails(ret, EPERM, "a fresh /sys cannot be mounted");
        else if (access("/sys/class/net/lo", F_OK) < 0)
                outcome_fails(ret, errno, "a fresh /sys shows no loopback");
        else
                outcome_works(ret, "%s", "");
}

static void look_at_terminal(Outcome *ret) {
        _cleanup_close_ int fd = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        int unlock = 0;

        if (fd < 0 || ioctl(fd, TIOCSPTLCK, &unlock) < 0)
                outcome_fails(ret, errno, "a terminal cannot be opened in a private devpts");
        else
                outcome_works(ret, "%s", "");
}

static void look_at_root(Outcome *ret) {
        struct statvfs st;

        if (statvfs("/usr", &st) < 0)
                outcome_fails(ret, errno, "/usr is not in the new root");
        else if (!(st.f_flag & ST_RDONLY))
                outcome_fails(ret, 0, "/usr was made read-only in the new root, and is not");
        else if (access("/etc", F_OK) == 0)
                outcome_fails(ret, 0, "the old root is still in sight");
        else
                outcome_works(ret, "%s", "");
}

static void forbid(int limits, Outcome *ret) {
        Failure f = {};

        if (namespaces_forbid_more(limits, &f) < 0)
                outcome_fails_at(ret, &f);
        else if (unshare(CLONE_NEWUSER) == 0 || errno != ENOSPC)
                outcome_fails(ret, 0, "further namespaces were forbidden, and can be made");
        else
                outcome_works(ret, "%s", "");
}

static void build(const Mechanism *m, int limits, Outcome *ret) {
        struct stat st = {};
        (void) stat("/usr", &st);
        PlanStep usr = {.type = STEP_BIND, .source = (char *) "/usr", .target = (char *) "/usr", .device = st.st_dev, .inode = st.st_ino};
        PlanStep steps[] = {
                [TRIAL_MOUNT_API] = usr,
                [TRIAL_PIVOT_ROOT] = usr,
                [TRIAL_PROC] = {.type = STEP_PROC, .target = (char *) "/proc"},
                [TRIAL_SYSFS] = {.type = STEP_SYSFS, .target = (char *) "/sys"},
                [TRIAL_TERMINAL] = {.type = STEP_DEVPTS, .target = (char *) "/dev/pts"},
                [TRIAL_NO_MORE_NAMESPACES] = usr,
        };
        Plan plan = {.steps = &steps[m->argument], .n_steps = 1};
        NetworkNamespace network = NETWORK_NAMESPACE_NONE; /* it is in one already */
        GapSet gaps = 0;
        Failure f = {};

        int r = mounts_build(&plan, &network, &gaps, &f);
        if (r < 0 && m->argument == TRIAL_MOUNT_API && f.stage == STAGE_PIVOT)
                outcome_works(ret, "%s", "");
        else if (r < 0) {
                outcome_fails_at(ret, &f);
                ret->tried = m->argument == TRIAL_MOUNT_API || f.stage == (m->argument == TRIAL_PIVOT_ROOT ? STAGE_PIVOT : STAGE_STEP);
        } else if (m->argument == TRIAL_PROC)
                look_at_proc(ret);
        else if (m->argument == TRIAL_SYSFS)
                look_at_sysfs(gaps, ret);
        else if (m->argument == TRIAL_TERMINAL)
                look_at_terminal(ret);
        else if (m->argument == TRIAL_NO_MORE_NAMESPACES)
                forbid(limits, ret);
        else
                look_at_root(ret);
}

void trial_part(const Mechanism *m, Outcome *ret) {
        trial_inside(build, m, ret);
}
