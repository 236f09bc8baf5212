/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/ahead.h"
#include "bailey/console.h"
#include "bailey/control.h"
#include "bailey/group.h"
#include "bailey/handover.h"
#include "bailey/init.h"
#include "bailey/landlock.h"
#include "bailey/mounts.h"
#include "bailey/namespaces.h"
#include "bailey/netfilter.h"
#include "bailey/network-namespace.h"
#include "bailey/seccomp.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "basic/path.h"
#include "basic/secret.h"

extern char **environ;

typedef struct Init {
        const InitContext *context;
        Failure *failure;
        GapSet gaps;
        int terminal;          /* the payload's, -EBADF for the caller's stdio */
        int children;          /* without a PID namespace: an open list of this process's children */
        int payload_rules;     /* of Landlock, for the payload alone; -EBADF: none */
        NetworkNamespace network;
        int namespaces[CONTROL_FDS_MAX];
        pid_t payload;
} Init;

/* Nobody outlives the supervisor. It may have gone before the request to die with it was made. */
static int die_with_supervisor(const Init *i) {
        struct pollfd p = {.fd = i->context->control};

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return failure_set(i->failure, STAGE_PROCESS, errno, "PR_SET_PDEATHSIG");
        if (poll(&p, 1, 0) != 0)
                return failure_set(i->failure, STAGE_PROCESS, ESRCH, "the supervisor");
        return 0;
}

/* What the caller ignored must not be ignored inside. */
static void reset_signals(void) {
        struct sigaction action = {.sa_handler = SIG_DFL};

        for (int s = 1; s < NSIG; s++)
                if (s != SIGKILL && s != SIGSTOP)
                        (void) sigaction(s, &action, NULL);
}

/* The kernel lays arguments, environment and the program's name out in one piece; what was handed over later is apart. They are the caller's; /proc/1 must not
 * show them, whatever else may fail to hide them. */
static void wipe_arguments(void) {
        static char *empty[] = {NULL};
        char *first = program_invocation_name;
        char *last = (char *) getauxval(AT_EXECFN); /* NOLINT: an address by definition */

        ahead_wipe();
        environ = empty;
        if (first && last && last > first && last - first < 64L * 1024 * 1024)
                secret_wipe(first, (size_t) (last - first));
}

static int keep_descriptors(const Init *i) {
        const RunOptions *o = i->context->options;
        int keep[6] = {i->context->control};
        size_t n = 1;

        if (!i->context->isolated && i->context->group >= 0)
                keep[n++] = i->context->group;
        if (o->broker_socket > 2)
                keep[n++] = o->broker_socket;
        if (o->broker_token > 2)
                keep[n++] = o->broker_token;
        if (o->console_socket > 2)
                keep[n++] = o->console_socket;
        if (o->error_output > 2)
                keep[n++] = o->error_output;
        int r = fd_close_all_except(3, keep, n);
        return r < 0 ? failure_set(i->failure, STAGE_DESCRIPTORS, r, "close_range") : 0;
}

static int write_network_setting(const char *name, const char *value, Failure *f) {
        char path[96];

        (void) snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
        int r = write_file_once(path, value);
        /* A kernel without IPv6 has none of them. */
        return r < 0 && r != -ENOENT ? failure_set(f, STAGE_PASTA, r, "%s", path) : 0;
}

/* For the interface to come. Nobody else is on that wire, so its address need not be looked for first. */
static int settle_interface(const Init *i) {
        const Network *n = i->context->plan->network;
        const char *const off[] = {n->ipv6 ? "0" : "1", "0", "0"};
        static const char *const names[] = {"ipv6/conf/default/disable_ipv6", "ipv6/conf/default/accept_dad", "ipv6/conf/default/accept_ra"};
        char group[32];

        /* As on most hosts: an echo needs no privilege. */
        (void) snprintf(group, sizeof(group), "%u %u", i->context->gid, i->context->gid);
        int r = write_network_setting("ipv4/ping_group_range", group, i->failure);
        for (size_t k = 0; k < ELEMENTSOF(names) && r >= 0; k++)
                r = write_network_setting(names[k], off[k], i->failure);
        return r;
}

enum { NAMESPACE_USER, NAMESPACE_NETWORK };

static int open_namespace(Init *i, unsigned which) {
        static const char *const paths[CONTROL_FDS_MAX] = {[NAMESPACE_USER] = "/proc/self/ns/user", [NAMESPACE_NETWORK] = "/proc/self/ns/net"};

        i->namespaces[which] = open(paths[which], O_RDONLY | O_CLOEXEC);
        return i->namespaces[which] < 0 ? failure_set(i->failure, STAGE_REPORT, errno, "%s", paths[which]) : 0;
}

/* The rules first, then the way out: see enter.c. */
static int join_network(Init *i) {
        const InitContext *c = i->context;
        const Network *n = c->plan->network;
        ControlMessage m = {.type = CONTROL_NETWORK}, answer;
        size_t n_fds;

        int r = netfilter_install(n, i->failure);
        if (r < 0 && (n->mode != NETWORK_PROXY || n->denied))
                return r;
        if (r < 0)
                i->gaps |= 1U << GAP_LOOPBACK_RULE;
        r = settle_interface(i);
        if (r >= 0)
                r = open_namespace(i, NAMESPACE_USER);
        if (r >= 0)
                r = open_namespace(i, NAMESPACE_NETWORK);
        if (r < 0)
                return r;
        r = control_send(c->control, &m, i->namespaces, CONTROL_FDS_MAX);
        if (r >= 0)
                r = control_receive(c->control, &answer, NULL, &n_fds);
        if (r <= 0 || answer.type != CONTROL_GO)
                return failure_set(i->failure, STAGE_PASTA, ECONNRESET, "awaiting the supervisor");
        for (size_t k = 0; k < CONTROL_FDS_MAX; k++)
                i->namespaces[k] = safe_close(i->namespaces[k]);
        return 0;
}

static const char *devpts_place(const Init *i) {
        const Plan *plan = i->context->plan;

        for (size_t k = 0; i->context->isolated && k < plan->n_steps; k++)
                if (plan->steps[k].type == STEP_DEVPTS)
                        return plan->steps[k].target;
        return i->context->isolated ? "/dev/pts" : "/dev";
}

/* From the account's other processes, as soon as the supervisor need not enter its namespaces any more. */
static int hide(const Init *i) {
        return prctl(PR_SET_DUMPABLE, 0) < 0 ? failure_set(i->failure, STAGE_PROCESS, errno, "PR_SET_DUMPABLE") : 0;
}

static int check_gaps(const Init *i) {
        const InitContext *c = i->context;

        for (Gap g = 0; g < _GAP_MAX; g++)
                if (i->gaps & c->refused_gaps & (1U << g))
                        return failure_set(i->failure, STAGE_GAP, 0, "%s: %s", gap_to_string(g), gap_describe(g));
        return 0;
}

/* Enters the network namespace that comes from the supervisor, and has it connected. */
static int enter_network(Init *i) {
        int r = network_namespace_enter(&i->network, i->failure);

        if (r >= 0)
                r = hide(i);
        return r < 0 || !network_has_pasta(i->context->plan->network) ? r : join_network(i);
}

static int build_isolated(Init *i) {
        const InitContext *c = i->context;
        _cleanup_close_ int limits = -EBADF;
        Failure limits_failure = {};
        int r, forbidden;

        r = namespaces_set_up(c->uid, c->gid, &limits, i->failure);
        if (r < 0)
                return r;
        if (c->own_network)
                i->network.control = c->control;
        if (network_has_pasta(c->plan->network))
                r = enter_network(i);
        if (r >= 0 && c->send_namespaces)
                r = open_namespace(i, NAMESPACE_USER);
        if (r >= 0 && c->send_namespaces && !c->own_network)
                r = open_namespace(i, NAMESPACE_NETWORK);
        /* What depends on no other step is done while the network namespace is made. Of a /proc that cannot be written to, the mounts know to say
         * more. */
        forbidden = namespaces_forbid_more(limits, &limits_failure);
        if (r >= 0)
                r = capabilities_bound(i->failure);
        if (r >= 0)
                r = mounts_build(c->plan, &i->network, &i->gaps, i->failure);
        if (r >= 0 && forbidden < 0) {
                *i->failure = limits_failure;
                r = forbidden;
        }
        if (r >= 0 && c->own_network)
                r = network_namespace_raise(i->failure);
        if (r >= 0)
                r = hide(i);
        if (r < 0)
                return r;
        if (c->send_namespaces && c->own_network)
                i->namespaces[NAMESPACE_NETWORK] = TAKE_FD(i->network.fd);
        i->network.fd = safe_close(i->network.fd);
        return check_gaps(i);
}

/* Of the namespaces the network's alone: a denied egress is one whatever the files are held by. */
static int build_network(Init *i) {
        const InitContext *c = i->context;
        _cleanup_close_ int limits = -EBADF;

        int r = namespaces_set_up_user(c->uid, c->gid, &limits, i->failure);
        if (r < 0)
                return r;
        i->network.control = c->control;
        r = enter_network(i);
        if (r >= 0)
                r = network_namespace_raise(i->failure);
        if (r >= 0 && c->send_namespaces)
                r = open_namespace(i, NAMESPACE_USER);
        if (r < 0)
                return r;
        if (c->send_namespaces)
                i->namespaces[NAMESPACE_NETWORK] = TAKE_FD(i->network.fd);
        i->network.fd = safe_close(i->network.fd);
        r = namespaces_forbid_more(limits, i->failure);
        return r < 0 ? r : check_gaps(i);
}

/* Without a PID namespace, orphans come to this process and not to the host's init, so that they can be ended. */
static int build_plain(Init *i) {
        char path[64];

        int r = i->context->own_network ? build_network(i) : hide(i);
        if (r < 0)
                return r;
        if (i->context->group >= 0 && !i->context->own_network) {
                r = group_join(i->context->group);
                if (r < 0)
                        return failure_set(i->failure, STAGE_PROCESS, r, "joining its control group");
        }
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return failure_set(i->failure, STAGE_PROCESS, errno, "PR_SET_CHILD_SUBREAPER");
        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int) getpid());
        i->children = open(path, O_RDONLY | O_CLOEXEC);
        if (i->children < 0)
                return failure_set(i->failure, STAGE_PROCESS, errno, "%s", path);
        return 0;
}

/* In a process of its own that has `parent`'s descriptors, both ends of the pipe and the control socket among them, so that it must
 * not outlive it: waits for the number of the listener and hands it over. */
_noreturn_ static void carry_listener(const Init *i, int from, pid_t parent) {
        ControlMessage m = {.type = CONTROL_LISTENER};
        int listener;

        bool told = prctl(PR_SET_PDEATHSIG, SIGKILL) >= 0 && getppid() == parent &&
                    read(from, &listener, sizeof(listener)) == sizeof(listener) && listener >= 0;
        _exit(told && control_send(i->context->control, &m, &listener, 1) >= 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* This process is listened to as well, and none of the calls that it makes may wait for somebody who cannot listen yet: so that it
 * is another, not listened to, that hands the listener over. */
static int be_observed(Init *i) {
        int ends[2], listener = -EBADF, status = -1;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return failure_set(i->failure, STAGE_SECCOMP, errno, "pipe");
        pid_t self = getpid(), courier = (pid_t) syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
        if (courier == 0)
                carry_listener(i, ends[0], self);
        int r = courier < 0 ? failure_set(i->failure, STAGE_SECCOMP, errno, "clone") : seccomp_listen(&listener, i->failure);
        if (courier > 0) {
                (void) write_all(ends[1], &listener, sizeof(listener));
                while (waitpid(courier, &status, 0) < 0 && errno == EINTR)
                        ;
        }
        if (r >= 0 && status != 0)
                r = failure_set(i->failure, STAGE_SECCOMP, EPIPE, "handing the listener over");
        safe_close(listener);
        safe_close(ends[0]);
        safe_close(ends[1]);
        return r;
}

/* From here on this process is as confined as the payload, which inherits all of it. */
static int confine(Init *i) {
        const InitContext *c = i->context;
        int r;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return failure_set(i->failure, STAGE_CAPABILITIES, errno, "PR_SET_NO_NEW_PRIVS");
        if (c->unconfined)
                return be_observed(i);
        r = landlock_restrict(c->plan, c->landlock_abi, c->isolated, i->failure);
        if (r < 0)
                return r;
        /* No PID namespace protects this process, and without it nobody would end what outlives the payload. */
        r = c->isolated ? 0 : landlock_signals_new(c->landlock_abi, &i->payload_rules);
        if (r < 0)
                return failure_set(i->failure, STAGE_LANDLOCK, r, "the payload's own rules");
        if (!c->isolated) /* else it was done before */
                r = capabilities_bound(i->failure);
        if (r >= 0)
                r = capabilities_drop(i->failure);
        if (r >= 0 && c->seccomp && !c->isolated)
                r = seccomp_load_own_limits(i->failure);
        if (r < 0)
                return r;
        bool internet = c->own_network || c->plan->network->mode == NETWORK_LANDLOCK;
        bool scoped = !(landlock_gaps(c->landlock_abi, false) & (1U << GAP_LANDLOCK | 1U << GAP_LANDLOCK_SCOPE));
        r = c->seccomp ? seccomp_load(internet, scoped, i->failure) : 0;
        return r < 0 || !c->options->observer ? r : be_observed(i);
}

static int set_up(Init *i) {
        const InitContext *c = i->context;
        int r;

        r = die_with_supervisor(i);
        if (r < 0)
                return r;
        reset_signals();
        wipe_arguments();
        r = keep_descriptors(i);
        if (r < 0)
                return r;
        r = c->isolated ? build_isolated(i) : build_plain(i);
        if (r < 0)
                return r;
        if (c->options->console_socket >= 0) {
                r = console_open(devpts_place(i), c->options->console_socket, c->options->rows, c->options->columns, &i->terminal, i->failure);
                if (r < 0)
                        return r;
        }
        if (c->options->broker_socket >= 0) {
                r = handover_run(c->options, i->failure);
                if (r < 0)
                        return r;
        }
        if (chdir(path_from_working_directory(c->plan->working_directory)) < 0)
                return failure_set(i->failure, STAGE_WORKING_DIRECTORY, errno, "%s", c->plan->working_directory);
        return confine(i);
}

/* Where there is something to tell, the payload waits until it has been told. */
static int await_go(Init *i) {
        ControlMessage m = {.type = CONTROL_PREPARED, .gaps = i->gaps}, answer;
        size_t n_fds = i->context->send_namespaces && i->namespaces[0] >= 0 ? CONTROL_FDS_MAX : 0;
        int r;

        if (i->context->options->report < 0 && i->gaps == 0 && !i->context->options->observer)
                return 0;
        r = control_send(i->context->control, &m, i->namespaces, n_fds);
        if (r < 0)
                return failure_set(i->failure, STAGE_REPORT, r, "telling the supervisor");
        r = control_receive(i->context->control, &answer, NULL, &n_fds);
        if (r <= 0 || answer.type != CONTROL_GO)
                return failure_set(i->failure, STAGE_REPORT, ECONNRESET, "awaiting the supervisor");
        return 0;
}

/* A signal that was to end the run came while it was being set up. */
static int check_interrupted(const Init *i) {
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
        sigset_t pending;

        if (sigpending(&pending) < 0)
                return failure_set(i->failure, STAGE_PROCESS, errno, "sigpending");
        for (size_t k = 0; k < ELEMENTSOF(signals); k++)
                if (sigismember(&pending, signals[k]) > 0)
                        return failure_set(i->failure, STAGE_EXECUTE, EINTR, "signal %d", signals[k]);
        return 0;
}

/* In the child of vfork(), in its parent's memory: only system calls until the end. Returns a positive errno. */
static int payload_execute(const Init *i) {
        const Plan *plan = i->context->plan;
        sigset_t none;
        int r;

        if (!i->context->isolated && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return errno;
        r = landlock_signals_restrict(i->payload_rules);
        if (r < 0)
                return -r;
        if (i->terminal >= 0) {
                r = console_adopt(i->terminal);
                if (r < 0)
                        return -r;
        }
        if (i->context->options->error_output > 2 && dup2(i->context->options->error_output, STDERR_FILENO) < 0)
                return errno;
        r = fd_close_all_except(3, NULL, 0);
        if (r < 0)
                return -r;
        for (size_t k = 0; k < plan->n_process_limits; k++) {
                const PlanProcessLimit *l = &plan->process_limits[k];
                struct rlimit limit;
                if (getrlimit((__rlimit_resource_t) l->resource, &limit) < 0)
                        return errno;
                limit.rlim_cur = limit.rlim_max = MIN(limit.rlim_max, (rlim_t) l->value);
                if (setrlimit((__rlimit_resource_t) l->resource, &limit) < 0)
                        return errno;
        }
        (void) sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                return errno;
        (void) execve(plan->executable, plan->argv, plan->environment);
        return errno;
}

/* vfork: the child's address space is never copied, and a failed execve() is known when this returns. */
static int payload_start(Init *i, int *ret_exec_error) {
        volatile int error = 0;

        i->context->progress->started = true;
        pid_t pid = vfork();
        if (pid < 0)
                return failure_set(i->failure, STAGE_EXECUTE, errno, "fork");
        if (pid == 0) {
                error = payload_execute(i);
                _exit(127);
        }
        i->payload = pid;
        i->terminal = safe_close(i->terminal);
        i->payload_rules = safe_close(i->payload_rules);
        *ret_exec_error = error;
        return 0;
}

/* Reaps whatever has ended. True when the payload is among it; survivors that were killed are counted. */
static bool reap(Init *i, int flags, ControlMessage *m, unsigned *killed) {
        bool ended = false;

        for (;;) {
                int status;
                pid_t pid = waitpid(-1, &status, flags | __WALL);
                if (pid < 0 && errno == EINTR)
                        continue;
                if (pid <= 0)
                        return ended;
                if (pid == i->payload && WIFSTOPPED(status)) {
                        ControlMessage stopped = {.type = CONTROL_STOPPED};
                        (void) control_send(i->context->control, &stopped, NULL, 0);
                } else if (pid == i->payload) {
                        m->wait_status = status;
                        ended = true;
                } else if (killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
                        ++*killed;
        }
}

/* Without a PID namespace: only this process's own children, which orphans become as their parents die. */
static bool kill_children(const Init *i) {
        char list[4096];
        bool any = false;

        ssize_t n = pread(i->children, list, sizeof(list) - 1, 0);
        if (n <= 0)
                return false;
        list[n] = 0;
        if (n == sizeof(list) - 1 && strrchr(list, ' '))
                *strrchr(list, ' ') = 0; /* the last may be the beginning of another's number */
        for (char *save = NULL, *p = strtok_r(list, " \n", &save); p; p = strtok_r(NULL, " \n", &save)) {
                uint64_t pid;
                if (parse_u64(p, INT32_MAX, &pid) >= 0 && pid > 1)
                        any |= kill((pid_t) pid, SIGKILL) == 0;
        }
        return any;
}

/* Whoever lost its parent is a child of this process: to have no child is to be the only one that was started inside. */
static bool no_survivors(void) {
        siginfo_t info;
        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

static void end_survivors(Init *i, ControlMessage *m) {
        if (no_survivors())
                return; /* kill(-1, …) looks at every process of the machine */
        (void) reap(i, WNOHANG, m, NULL);
        if (i->context->isolated) {
                if (kill(-1, SIGKILL) == 0)
                        (void) reap(i, 0, m, &m->survivors);
                return;
        }
        /* One at a time: what a child that ends has left comes to this process only then, alive. */
        while (kill_children(i)) {
                siginfo_t info;
                (void) waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | __WALL);
                (void) reap(i, WNOHANG, m, &m->survivors);
        }
}

/* Signals that the supervisor sends on, or that came from outside the namespace; not the payload's own, and not what the
 * terminal sends to the whole process group, the payload included. */
static bool to_forward(const Init *i, const siginfo_t *info) {
        pid_t sender = i->context->isolated ? 0 : i->context->supervisor;
        return info->si_code != SI_KERNEL && info->si_pid == sender;
}

_noreturn_ static void serve(Init *i, ControlMessage *m) {
        sigset_t all;
        siginfo_t info;

        (void) sigfillset(&all);
        while (!reap(i, WNOHANG | WUNTRACED, m, NULL)) {
                int s = sigwaitinfo(&all, &info);
                if (s > 0 && s != SIGCHLD && to_forward(i, &info))
                        (void) kill(i->payload, s);
        }
        end_survivors(i, m);
        (void) control_send(i->context->control, m, NULL, 0);
        _exit(EXIT_SUCCESS);
}

void init_run(const InitContext *context) {
        ControlMessage m = {.type = CONTROL_ENDED};
        Init i = {
                .context = context,
                .failure = &m.failure,
                .terminal = -EBADF,
                .children = -EBADF,
                .payload_rules = -EBADF,
                .network = NETWORK_NAMESPACE_NONE,
                .namespaces = {-EBADF, -EBADF},
        };
        int r;

        context->progress->begun = true;
        r = set_up(&i);
        if (r >= 0)
                r = await_go(&i);
        if (r >= 0)
                r = fd_close_all_except(3, (const int[]) {context->control, i.terminal, i.children, context->options->error_output,
                                                          i.payload_rules}, 5);
        if (r >= 0)
                r = check_interrupted(&i);
        if (r >= 0)
                r = payload_start(&i, &m.exec_error);
        if (r < 0) {
                m.type = CONTROL_FAILED;
                (void) control_send(context->control, &m, NULL, 0);
                _exit(EXIT_FAILURE);
        }
        serve(&i, &m);
}
