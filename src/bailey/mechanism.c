/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/landlock.h"
#include "bailey/trial.h"
#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"

#define TRIAL_USEC (10 * USEC_PER_SEC) /* each takes milliseconds, pasta a tenth of a second */

#define MECHANISM_USER_NAMESPACES "user-namespaces"
#define MECHANISM_TUN "tun"
#define EGRESS_COST "bailey run --egress-proxy is refused"

const Mechanism mechanisms[] = {
        {MECHANISM_USER_NAMESPACES, NEED_DEFAULT, GAP_NAMESPACES, NULL, trial_namespace, CLONE_NEWUSER, 0, NULL, NULL},
        {"mount-namespaces", NEED_DEFAULT, GAP_NAMESPACES, NULL, trial_namespace, CLONE_NEWNS, 0, MECHANISM_USER_NAMESPACES, NULL},
        {"pid-namespaces", NEED_DEFAULT, GAP_NAMESPACES, NULL, trial_namespace, CLONE_NEWPID, 0, MECHANISM_USER_NAMESPACES, NULL},
        {"network-namespaces", NEED_DEFAULT, GAP_NAMESPACES, NULL,
         trial_namespace, CLONE_NEWNET, 0, MECHANISM_USER_NAMESPACES, NULL},
        {"ipc-namespaces", NEED_DEFAULT, GAP_NAMESPACES, NULL, trial_namespace, CLONE_NEWIPC, 0, MECHANISM_USER_NAMESPACES, NULL},
        {"uts-namespaces", NEED_DEFAULT, GAP_NAMESPACES, NULL, trial_namespace, CLONE_NEWUTS, 0, MECHANISM_USER_NAMESPACES, NULL},
        {"cgroup-namespaces", NEED_DEFAULT, GAP_NAMESPACES, NULL,
         trial_namespace, CLONE_NEWCGROUP, 0, MECHANISM_USER_NAMESPACES, NULL},
        {MECHANISM_NAMESPACES, NEED_RUN, GAP_NAMESPACES, NULL, trial_namespaces, 0, 0, NULL, NULL},
        {"mount-api", NEED_RUN, _GAP_INVALID, "nothing runs: there is no root to run it in",
         trial_part, TRIAL_MOUNT_API, KERNEL(5, 12), MECHANISM_NAMESPACES, NULL},
        {"pivot-root", NEED_RUN, _GAP_INVALID, "nothing runs: the old root cannot be left",
         trial_part, TRIAL_PIVOT_ROOT, 0, MECHANISM_NAMESPACES, NULL},
        {"proc", NEED_RUN, _GAP_INVALID, "nothing runs: the only /proc shows the host's processes",
         trial_part, TRIAL_PROC, 0, MECHANISM_NAMESPACES, NULL},
        {"sysfs", NEED_DEFAULT, GAP_SYSFS, NULL, trial_part, TRIAL_SYSFS, 0, MECHANISM_NAMESPACES,
         "a container around this host's root hides /sys: run it with its /sys in sight, or do without"},
        {"terminal", NEED_RUN, _GAP_INVALID, "nothing runs: there is no terminal of its own for a command",
         trial_part, TRIAL_TERMINAL, 0, MECHANISM_NAMESPACES, NULL},
        {"no-more-namespaces", NEED_RUN, _GAP_INVALID, "nothing runs: a command could get capabilities in further namespaces",
         trial_part,
         TRIAL_NO_MORE_NAMESPACES, 0, MECHANISM_NAMESPACES, NULL},
        {MECHANISM_LANDLOCK, NEED_DEFAULT, GAP_LANDLOCK, NULL, trial_landlock, LANDLOCK_RIGHT_READ, KERNEL(5, 13), NULL,
         "add landlock to the list of the kernel's lsm= parameter (see /sys/kernel/security/lsm), or allow its calls in the container around"},
        {"landlock-refer", NEED_DEFAULT, GAP_LANDLOCK_REFER, NULL,
         trial_landlock, LANDLOCK_RIGHT_REFER, KERNEL(5, 19), NULL, NULL},
        {"landlock-truncate", NEED_DEFAULT, GAP_LANDLOCK_TRUNCATE, NULL,
         trial_landlock, LANDLOCK_RIGHT_TRUNCATE, KERNEL(6, 2), NULL, NULL},
        {"landlock-connect", NEED_OPTION, _GAP_INVALID, "where a policy allows some TCP ports, they cannot be told apart",
         trial_landlock,
         LANDLOCK_RIGHT_CONNECT, KERNEL(6, 7), NULL, NULL},
        {"landlock-ioctl", NEED_DEFAULT, GAP_LANDLOCK_IOCTL, NULL,
         trial_landlock, LANDLOCK_RIGHT_IOCTL, KERNEL(6, 10), NULL, NULL},
        {"landlock-scope", NEED_DEFAULT, GAP_LANDLOCK_SCOPE, NULL,
         trial_landlock, LANDLOCK_RIGHT_SCOPE, KERNEL(6, 12), NULL, NULL},
        {MECHANISM_SECCOMP, NEED_DEFAULT, GAP_SECCOMP, NULL, trial_seccomp, 0, KERNEL(4, 14), NULL,
         "use a kernel with CONFIG_SECCOMP_FILTER, or allow seccomp in the container around"},
        {"seccomp-notification", NEED_OPTION, _GAP_INVALID, "bailey audit has nothing to see by",
         trial_seccomp_notification, 0, KERNEL(5, 0), NULL,
         "allow seccomp in the container around"},
        {"control-group", NEED_OPTION, GAP_RESOURCES, NULL, trial_control_group, 0, 0, NULL,
         "systemd-run --user --scope -p Delegate=yes bailey run ..., or name a group that you may make groups in: BAILEY_CGROUP_ROOT"},
        {MECHANISM_TUN, NEED_OPTION, _GAP_INVALID, "pasta has nothing to connect a namespace by",
         trial_tun, 0, 0, MECHANISM_NAMESPACES,
         "sudo modprobe tun, and give /dev/net/tun mode 0666, as a plain Debian does"},
        {"pasta", NEED_OPTION, _GAP_INVALID, EGRESS_COST ", and no policy but landlock-only reaches the network",
         trial_pasta, 0, 0, MECHANISM_TUN,
         "install pasta (Debian: apt install passt), and see that this host has a default route"},
        {"nftables", NEED_OPTION, _GAP_INVALID, EGRESS_COST, trial_nftables, 0, 0, MECHANISM_NAMESPACES,
         "install libnftables (Debian: apt install libnftables1) and errand's bailey-netfilter, and see that the kernel has nf_tables (modprobe nf_tables)"},
};
const size_t n_mechanisms = ELEMENTSOF(mechanisms);

/* ---- outcomes ---- */

void outcome_works(Outcome *o, const char *format, ...) {
        va_list ap;

        o->works = true;
        va_start(ap, format);
        (void) vsnprintf(o->text, sizeof(o->text), format, ap);
        va_end(ap);
}

void outcome_fails(Outcome *o, int error, const char *format, ...) {
        va_list ap;

        o->works = false;
        va_start(ap, format);
        int n = vsnprintf(o->text, sizeof(o->text), format, ap);
        va_end(ap);
        if (error != 0 && n >= 0 && (size_t) n < sizeof(o->text))
                (void) snprintf(o->text + n, sizeof(o->text) - (size_t) n, ": %s", strerror(abs(error)));
}

void outcome_fails_at(Outcome *o, const Failure *f) {
        o->failure = *f;
        outcome_fails(o, f->error, "%s%s%.400s%s", stage_describe(f->stage), f->text[0] ? " (" : "", f->text, f->text[0] ? ")" : "");
}

/* ---- trying ---- */

/* In a process group of its own, so that all that it starts can be killed. */
_noreturn_ static void attempt(const Mechanism *m, int answer) {
        Outcome o = {.tried = true, .failure.stage = _STAGE_INVALID};

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setpgid(0, 0) < 0)
                outcome_fails(&o, errno, "its process");
        else
                m->attempt(m, &o);
        _exit(write_all(answer, &o, sizeof(o)) < 0);
}

static int await_outcome(int answer, Outcome *ret) {
        usec_t end = now_monotonic() + TRIAL_USEC;
        size_t size = 0;

        while (size < sizeof(*ret)) {
                struct pollfd p = {.fd = answer, .events = POLLIN};
                usec_t now = now_monotonic();

                int r = now >= end ? 0 : poll(&p, 1, (int) ((end - now) / USEC_PER_MSEC + 1));
                if (r < 0 && errno == EINTR)
                        continue;
                if (r <= 0)
                        return r < 0 ? -errno : -ETIMEDOUT;
                ssize_t n = read(answer, (char *) ret + size, sizeof(*ret) - size);
                if (n <= 0)
                        return n < 0 ? -errno : -EPIPE;
                size += (size_t) n;
        }
        return 0;
}

void mechanism_try(const Mechanism *m, Outcome *ret) {
        Outcome o = {.tried = true, .failure.stage = _STAGE_INVALID}, answer;
        int pair[2];

        if (pipe2(pair, O_CLOEXEC) < 0) {
                outcome_fails(&o, errno, "pipe");
                *ret = o;
                return;
        }
        pid_t pid = fork();
        if (pid == 0)
                attempt(m, pair[1]);
        safe_close(pair[1]);
        int r = pid < 0 ? -errno : await_outcome(pair[0], &answer);
        if (r >= 0)
                o = answer;
        else
                outcome_fails(&o, r, r == -EPIPE ? "the process that tried it was killed" : "it cannot be tried");
        if (pid > 0) {
                (void) kill(-pid, SIGKILL);
                (void) kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        safe_close(pair[0]);
        *ret = o;
}

/* ---- words ---- */

bool mechanism_stops_runs(const Mechanism *m, const Outcome *outcome) {
        return !outcome->works && (m->need == NEED_RUN || (m->need == NEED_DEFAULT && outcome->failure.stage >= 0));
}

const char *mechanism_cost(const Mechanism *m, const Outcome *outcome) {
        if (m->gap != GAP_NAMESPACES && m->need == NEED_DEFAULT && mechanism_stops_runs(m, outcome))
                return "nothing runs: it is there, and cannot be used";
        return m->cost ?: gap_describe(m->gap);
}

static bool sysctl_is(const char *path, const char *value) {
        _cleanup_free_ char *text = NULL;

        return read_file_full(path, 64, &text, NULL) >= 0 && startswith(text, value) && text[strlen(value)] == '\n';
}

static const char *remedy_namespaces(const Outcome *outcome) {
        if (nesting_forbidden())
                return "run bailey outside the sandbox around it; if there is none: sudo sysctl user.max_user_namespaces=10000";
        if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", "0"))
                return "sudo sysctl kernel.unprivileged_userns_clone=1";
        if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
                return "AppArmor restricts user namespaces: give bailey a profile that has \"userns,\" (bailey(1), DIAGNOSTICS), or for every "
                       "program: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
        return (outcome->failure.stage >= 0 ? failure_hint(&outcome->failure) : NULL)
                ?: "use a kernel that is built with all kinds of namespaces, and allow unshare, clone3 and mount in the container around";
}

/* Whether the kernel that runs is older than the first that has it. */
static bool kernel_too_old(const Mechanism *m, struct utsname *ret) {
        unsigned major, minor;

        return m->kernel > 0 && uname(ret) == 0 && sscanf(ret->release, "%u.%u", &major, &minor) == 2 &&
               (major < m->kernel >> 8 || (major == m->kernel >> 8 && minor < (m->kernel & 0xff)));
}

void mechanism_remedy(const Mechanism *m, const Outcome *outcome, char ret[512]) {
        struct utsname name;
        const char *text;

        if (kernel_too_old(m, &name)) {
                (void) snprintf(ret, 512, "use Linux %u.%u or later; this is %.64s", m->kernel >> 8, m->kernel & 0xff, name.release);
                return;
        }
        if (m->gap == GAP_NAMESPACES)
                text = remedy_namespaces(outcome);
        else if (!m->remedy && outcome->failure.stage >= 0 && (text = failure_hint(&outcome->failure)))
                ;
        else
                text = m->remedy ?: "allow its calls in the container or system call filter around this process";
        (void) snprintf(ret, 512, "%s", text);
}
