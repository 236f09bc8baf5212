/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Theory of operation
 *
 * Two processes of ours exist during a run: the supervisor, which is bailey itself, and the sandbox's first process ("init",
 * PID 1 inside), a child of it that builds the world around itself, confines itself, and only then makes the payload.
 *
 * Before the child exists (here): the caller is not root; what Landlock and seccomp can do is asked of the kernel, and what is
 * missing is warned of or, under --strict, refused. All that costs nothing to undo comes first.
 *
 * clone3() puts the child into the control group that holds its limits, if any (group.c): no instruction of it runs outside.
 *
 * 1. One clone3() makes the child in all its namespaces but the network's (namespaces.c), with no helper process between it and the
 *    supervisor, whose death kills it (PDEATHSIG, and a look at the control socket afterwards in case it died before). The
 *    network's takes the kernel as long as all of step 4: the supervisor has it made in the child's user namespace meanwhile
 *    (network-namespace.c), and the child enters it before it mounts a sysfs. Nothing that is not bailey has run by then.
 * 2. Signals get their defaults, the caller's arguments and environment are wiped from memory, inherited descriptors are
 *    closed: nothing of the caller is left to leak by the time anything else runs.
 * 3. Ids are mapped. This makes the capabilities usable; until it is done nothing can be mounted. Then the host name, and what
 *    depends on nothing else: the limit on further user namespaces, and the bounding set, which does not touch what init has itself.
 *    Where the run has a way out (pasta.h), the rules of the packet filter are installed first, by this process, and only then
 *    does the supervisor have pasta connect the namespace: there is no moment at which it is connected and open.
 * 4. The new root is built (mounts.c): propagation is cut first, so that nothing mounted from here on is seen outside; the
 *    root is attached before its children, because a detached tree does not take mounts on every kernel; each source is
 *    opened, compared with what the policy was resolved for, made read-only and the like while still detached, and only then
 *    attached, so that no path is ever seen with more rights than it shall have. A fresh proc and sysfs must come before the
 *    pivot: the kernel grants them only to who can see whole ones already. Last the root's own tmpfs becomes read-only,
 *    and the pivot takes the old root away.
 * 5. The terminal is opened in the devpts just made; the broker's listener is opened in the network namespace and handed over
 *    (handover.c). Both need no path of the old world (sockets were connected before), and the hand-over comes after all
 *    that is likely to fail, because its token is good for one try.
 * 6. no_new_privs, Landlock, capabilities, seccomp, in this order: Landlock needs no_new_privs and paths that can be opened;
 *    dropping capabilities needs calls that the filter does not forbid, yet the filter comes last so that it need not allow
 *    anything for our own sake.
 * 7. What was found missing on the way is told to the supervisor, which warns and writes the report; then init vforks the
 *    payload, in which every descriptor above 2 is closed. Init holds nothing that the payload may not have either.
 *
 * Whatever fails in 1 to 7 ends the run with one line that names the step. Nothing is retried with less, with one exception:
 * where the kernel says, in 1, that there are no namespaces here, a run that is neither strict nor brokered goes on with
 * Landlock on the host's paths and a filter that refuses internet sockets. Without Landlock, or without seccomp, not even then.
 *
 * With no_isolate that is asked for, but for the network namespace, which a run has nonetheless where its mode has one, in a user
 * namespace that nothing else is made in. 4 is left out then, and so is what a gap tells.
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/control.h"
#include "bailey/enter.h"
#include "bailey/group.h"
#include "bailey/init.h"
#include "bailey/landlock.h"
#include "bailey/namespaces.h"
#include "bailey/network-namespace.h"
#include "bailey/pasta.h"
#include "bailey/report.h"
#include "bailey/seccomp.h"
#include "bailey/supervise.h"
#include "basic/fd.h"
#include "basic/log.h"

static void warn_gaps(GapSet gaps) {
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (gaps & (1U << g))
                        log_warning("not enforced: %s (%s)", gap_to_string(g), gap_describe(g));
}

/* Names the first gap that must not be. */
static int refuse_gaps(GapSet gaps, Failure *f) {
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (gaps & (1U << g))
                        return failure_set(f, STAGE_GAP, 0, "%s: %s; accept it with --accept-gap %s, or run without --strict",
                                           gap_to_string(g), gap_describe(g), gap_to_string(g));
        return 0;
}

/* Descriptors 0 to 2 are open from here on, so that no file of ours becomes the payload's standard output. A directory is a way
 * back into the old root: names below it could be looked at, its sockets connected to, and what a cover hides be opened where
 * the rest is granted. The same of what O_PATH opened, which is of no use as a standard stream. */
static int check_standard_fds(Failure *f) {
        struct stat st;

        for (int fd = 0; fd <= 2; fd++) {
                int flags = fcntl(fd, F_GETFL);
                if (flags < 0) {
                        if (open("/dev/null", O_RDWR | O_NOCTTY) < 0)
                                return failure_set(f, STAGE_CALLER, errno, "/dev/null");
                        continue;
                }
                if (fstat(fd, &st) < 0)
                        return failure_set(f, STAGE_CALLER, errno, "descriptor %d", fd);
                if (S_ISDIR(st.st_mode) || (flags & O_PATH))
                        return failure_set(f, STAGE_CALLER, 0, "descriptor %d is a %s, by which the command could leave the sandbox; "
                                           "redirect it to a file or /dev/null", fd, S_ISDIR(st.st_mode) ? "directory" : "mere path");
        }
        return 0;
}


static int check_caller(const Plan *plan, const RunOptions *options, Failure *f) {
        if (geteuid() == 0 || getuid() == 0)
                return failure_set(f, STAGE_CALLER, EPERM, "a command is never run as root; use --user NAME, or run it as an "
                                                           "ordinary account");
        if (!plan->executable || !plan->argv || !plan->argv[0] || !plan->environment || !plan->working_directory)
                return failure_set(f, STAGE_CALLER, EINVAL, "the plan has nothing to execute");
        if ((plan->network->mode == NETWORK_BROKER) != (options->broker_socket >= 0))
                return failure_set(f, STAGE_CALLER, EINVAL, "a broker is needed where the plan says so, and only there");
        return check_standard_fds(f);
}

/* What only a root of its own can hold. */
static GapSet root_gaps(const Plan *plan) {
        return 1U << GAP_PRIVATE_TMP | 1U << GAP_PRIVATE_HOME |
               (plan->nested_deny ? 1U << GAP_NESTED_DENY : 0) | (plan->nested_read_only ? 1U << GAP_READ_ONLY : 0);
}

GapSet enter_isolation_gaps(const Plan *plan) {
        return 1U << GAP_ISOLATION | root_gaps(plan);
}

static GapSet gaps_of(const Plan *plan, const RunOptions *options, int abi, bool seccomp) {
        return landlock_gaps(abi, network_has_ports(plan->network)) | (seccomp ? 0 : 1U << GAP_SECCOMP) |
               (options->no_isolate ? enter_isolation_gaps(plan) : 0);
}

/* The kernel refused a namespace with `error`. Decides whether the run may go on without. */
static int fall_back(const InitContext *c, int error, RunResult *result, Failure *f) {
        GapSet gaps = 1U << GAP_NAMESPACES | root_gaps(c->plan);
        NetworkMode mode = c->plan->network->mode;

        if (!namespaces_unavailable(error))
                return failure_set(f, STAGE_NAMESPACES, error, "%s", c->group >= 0 ? "in the run's control group" : "");
        if (c->options->broker_socket >= 0)
                return failure_set(f, STAGE_NAMESPACES, error, "a brokered run needs its own network namespace");
        if (network_has_pasta(c->plan->network))
                return failure_set(f, STAGE_NAMESPACES, error, "%s needs its own network namespace",
                                   mode == NETWORK_PROXY ? "--proxy-net" : "--egress-proxy");
        if (c->landlock_abi <= 0)
                return failure_set(f, STAGE_NAMESPACES, error, "and there is no Landlock: files could not be protected at all");
        if (!c->seccomp && mode == NETWORK_ISOLATED)
                return failure_set(f, STAGE_NAMESPACES, error, "and there is no seccomp: the network could not be denied");
        if (c->options->strict && (gaps & ~c->options->accepted_gaps))
                return failure_set(f, STAGE_NAMESPACES, error, "--strict does not run without them");

        log_warning_errno(error, "no namespaces here (%m)%s", nesting_forbidden() ? ": nested sandboxing is not permitted here" : "");
        warn_gaps(gaps & ~result->gaps);
        result->gaps = (result->gaps | gaps) & ~(1U << GAP_ISOLATION);
        return 0;
}

/* The child has made the network namespace and installed the rules in it; pasta connects it. */
static int connect_network(const InitContext *c, Supervisor *s, Failure *f) {
        ControlMessage m, go = {.type = CONTROL_GO};
        int fds[CONTROL_FDS_MAX];
        size_t n_fds = 0;

        int r = control_receive(s->control, &m, fds, &n_fds);
        if (r <= 0)
                return failure_set(f, STAGE_PROCESS, r < 0 ? r : ECONNRESET, "the first process went away");
        if (m.type == CONTROL_FAILED) {
                *f = m.failure;
                r = f->error > 0 ? -f->error : -EIO;
        } else if (m.type != CONTROL_NETWORK || n_fds != CONTROL_FDS_MAX)
                r = failure_set(f, STAGE_PROCESS, EBADMSG, "its message");
        else
                r = pasta_start(c->plan->network, fds[0], fds[1], &s->pasta, f);
        for (size_t i = 0; i < n_fds; i++)
                safe_close(fds[i]);
        if (r < 0)
                return r;
        r = control_send(s->control, &go, NULL, 0);
        return r < 0 ? failure_set(f, STAGE_PROCESS, r, "the first process went away") : 0;
}

/* What cannot be limited is a gap of the run that asked for limits. */
static int settle_limits(const InitContext *c, const char *lack, RunResult *result, Failure *f) {
        const GapSet gap = (GapSet) 1 << GAP_RESOURCES;
        bool wanted = plan_limits_any(&c->plan->limits);

        result->limited = wanted && !*lack;
        if (*lack)
                log_warning("%s: %s", wanted ? "not limited" : "no control group for this run", lack);
        if (!*lack || !wanted)
                return 0;
        result->gaps |= gap;
        int r = refuse_gaps(gap & c->refused_gaps, f);
        if (r >= 0)
                warn_gaps(gap);
        return r;
}

static int start_child(InitContext *c, Supervisor *s, Failure *f) {
        bool namespaces = c->isolated || c->own_network;
        int pair[2];

        int r = control_new(pair);
        if (r < 0)
                return failure_set(f, STAGE_PROCESS, r, "socketpair");
        _cleanup_close_ int ours = pair[0], theirs = pair[1];

        /* A caller that changed its ids, or whose file it may not read, is not, and the child would be so too when the supervisor
         * enters its user namespace: refused then, the run would go on without namespaces. */
        if (namespaces && prctl(PR_SET_DUMPABLE, 1) < 0)
                return failure_set(f, STAGE_PROCESS, errno, "PR_SET_DUMPABLE");
        c->control = theirs;
        pid_t pid = c->isolated    ? namespaces_clone(false, c->group, &s->pidfd) :
                    c->own_network ? namespaces_clone_user(false, c->group, &s->pidfd) : fork();
        if (pid < 0)
                return namespaces ? failure_set(f, STAGE_NAMESPACES, pid, "%s", "") : failure_set(f, STAGE_PROCESS, errno, "fork");
        if (pid == 0)
                init_run(c);

        s->result->isolated = c->isolated;
        s->result->own_network = c->own_network;
        s->child = pid;
        s->control = TAKE_FD(ours);
        safe_close(TAKE_FD(theirs)); /* so that its end is noticed */
        if (c->own_network)
                r = network_namespace_give(s->pidfd, s->control, f);
        if (r >= 0 && network_has_pasta(c->plan->network))
                r = connect_network(c, s, f);
        if (r < 0)
                supervisor_abandon(s);
        return r;
}

static int run_child(InitContext *c, Supervisor *s, bool namespaces, Failure *f) {
        c->isolated = namespaces && !s->options->no_isolate;
        c->own_network = namespaces && c->plan->network->mode != NETWORK_LANDLOCK;
        c->send_namespaces = (c->isolated || c->own_network) && s->options->report >= 0 && report_takes_fds(s->options->report);
        int r = start_child(c, s, f);
        return r < 0 ? r : supervise(s, f);
}

/* Whether processes can be made in the group is tried where that is in question only: a first process that was made in it has shown
 * it. One that was not, or was killed before it ran, has done nothing, and is made once more when the group is looked at, or without it. */
static int run_grouped(InitContext *c, Supervisor *s, Group *group, bool namespaces, Failure *f) {
        bool joins = !namespaces || (s->options->no_isolate && c->plan->network->mode == NETWORK_LANDLOCK);
        int r = 0;

        if (!joins) {
                r = run_child(c, s, namespaces, f);
                if (r >= 0 || c->progress->begun)
                        return r;
        }
        if (group->directory < 0 || group->checked)
                return joins ? run_child(c, s, namespaces, f) : r;
        size_t told = strlen(group->lack);
        s->control = safe_close(s->control);
        s->pidfd = safe_close(s->pidfd);
        group_check(group);
        c->group = group->directory;
        *f = (Failure) {};
        const char *more = group->lack + MIN(told + (told > 0 ? strlen("; ") : 0), strlen(group->lack)); /* there may have been no room for more */
        r = c->group >= 0 ? 0 : settle_limits(c, *more ? more : group->lack, s->result, f);
        return r < 0 ? r : run_child(c, s, namespaces, f);
}

/* With namespaces, or, where the kernel has none to give, the way it goes without. */
static int run_children(InitContext *c, Supervisor *s, Group *group, Failure *f) {
        if (s->options->no_isolate && c->landlock_abi <= 0)
                return failure_set(f, STAGE_LANDLOCK, EOPNOTSUPP, "with --no-isolate nothing else would protect files");
        int r = run_grouped(c, s, group, !c->unconfined, f);
        if (r >= 0 || !(c->isolated || c->own_network) || f->stage != STAGE_NAMESPACES)
                return r;
        s->control = safe_close(s->control);
        s->pidfd = safe_close(s->pidfd);
        r = fall_back(c, -f->error, s->result, f);
        return r < 0 ? r : run_grouped(c, s, group, false, f);
}

static int run(const Plan *plan, const RunOptions *options, RunResult *result, Failure *f) {
        InitContext c = {
                .plan = plan,
                .options = options,
                .group = -EBADF,
                .supervisor = getpid(),
                .uid = geteuid(),
                .gid = getegid(),
                .landlock_abi = landlock_abi(),
                .seccomp = seccomp_available(),
                .unconfined = options->observer && options->observer->unconfined,
                .refused_gaps = options->strict ? ~options->accepted_gaps : 0,
        };
        Supervisor s = {
                .pidfd = -EBADF, .control = -EBADF, .signals = -EBADF, .options = options, .plan = plan, .result = result,
                .interactive = options->console_socket < 0,
        };
        _cleanup_(group_remove) Group group = GROUP_NONE; /* after all that was in it */
        SignalState signals;
        int r;

        if (options->observer && !c.seccomp)
                return failure_set(f, STAGE_SECCOMP, EOPNOTSUPP, "there is nothing to audit by");
        result->landlock_abi = c.unconfined ? 0 : c.landlock_abi;
        result->gaps = c.unconfined ? 0 : options->gaps | gaps_of(plan, options, c.landlock_abi, c.seccomp);
        r = refuse_gaps(result->gaps & c.refused_gaps, f);
        if (r < 0)
                return r;
        warn_gaps(result->gaps & ~options->gaps);
        group_make(&plan->limits, &group);
        c.group = group.directory;
        r = settle_limits(&c, group.lack, result, f);
        if (r < 0)
                return r;

        r = signals_take(&signals, &s.signals);
        if (r < 0)
                return failure_set(f, STAGE_PROCESS, r, "taking signals");
        c.progress = mmap(NULL, sizeof(InitProgress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        s.progress = c.progress;
        r = c.progress == MAP_FAILED ? failure_set(f, STAGE_PROCESS, errno, "shared memory") : run_children(&c, &s, &group, f);
        result->oom_kills = group_oom_kills(&group);
        if (c.progress != MAP_FAILED)
                (void) munmap(c.progress, sizeof(InitProgress));
        signals_give_back(&signals, s.signals);
        pasta_stop(&s.pasta);
        safe_close(s.pidfd);
        safe_close(s.control);
        safe_close(s.signals);
        return r;
}

/* The file was found, so these are about what it needs. */
static const char *execute_hint(int error) {
        switch (error) {
        case ENOENT:
                return "; what its #! line or its loader names does not exist inside";
        case ENOEXEC:
                return "; it is no program of this machine, and a script needs a #! line";
        default:
                return "";
        }
}

int enter_run(const Plan *plan, const RunOptions *options, RunResult *ret) {
        RunResult result = {};
        Failure failure = {};

        int r = check_caller(plan, options, &failure);
        if (r >= 0)
                r = run(plan, options, &result, &failure);
        if (r < 0 && plan->network->mode == NETWORK_PROXY &&
            (failure.stage == STAGE_NAMESPACES || failure.stage == STAGE_NETFILTER || failure.stage == STAGE_PASTA)) {
                failure_warn(&failure);
                return ENTER_NO_PROXY;
        }
        if (r < 0)
                return failure_log(&failure);
        if (!result.started)
                (void) log_error_errno(failure.error, "%s cannot be executed: %m%s", plan->executable, execute_hint(failure.error));
        *ret = result;
        return 0;
}
