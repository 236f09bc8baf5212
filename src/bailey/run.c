/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/account.h"
#include "bailey/closing.h"
#include "bailey/enter.h"
#include "bailey/environment.h"
#include "bailey/explain.h"
#include "bailey/git-watch.h"
#include "bailey/home.h"
#include "bailey/landlock.h"
#include "bailey/layers.h"
#include "bailey/namespaces.h"
#include "bailey/pasta.h"
#include "bailey/planner.h"
#include "bailey/run.h"
#include "bailey/show.h"
#include "bailey/target.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"

/* Connects to the broker. sun_path holds 107 bytes; a longer path is reached over a descriptor of its directory. */
static int connect_broker(const char *path, int *ret) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), directory = -EBADF;
        const char *name = path;

        if (fd < 0)
                return log_error_errno(errno, "Failed to make a socket: %m");
        if (strlen(path) >= sizeof(address.sun_path)) {
                const char *slash = strrchr(path, '/');
                _cleanup_free_ char *parent = slash ? strndup(path, (size_t) (slash - path) + 1) : NULL;
                char through[sizeof(address.sun_path)];

                directory = parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
                if (directory < 0)
                        return log_error_errno(parent ? errno : ENAMETOOLONG,
                                               "Failed to connect to the broker at %s: %m; nothing was run", path);
                if (snprintf(through, sizeof(through), "/proc/self/fd/%d/%s", directory, slash + 1) >= (int) sizeof(through))
                        return log_error_errno(ENAMETOOLONG, "Failed to connect to the broker at %s: %m; nothing was run", path);
                memcpy(address.sun_path, through, strlen(through) + 1);
        } else
                memcpy(address.sun_path, name, strlen(name) + 1);
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return log_error_errno(errno, "Failed to connect to the broker at %s: %m; nothing was run", path);
        *ret = TAKE_FD(fd);
        return 0;
}

int run_resolve(const Options *o, char *const *argv, const Account *account, Policy **ret) {
        _cleanup_(findings_done) Findings findings = {};
        _cleanup_free_ char *target = NULL;
        char **extra = NULL;
        int r;

        r = target_find(argv[0], &target);
        if (r < 0)
                return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
        r = o->env_fd >= 0 ? environment_read_fd(o->env_fd, &findings, &extra) : 0;
        if (r >= 0 && !findings_failed(&findings))
                r = policy_resolve(&(PolicyRequest){
                        .account = account,
                        .target = target,
                        .config = o->config,
                        .profile = o->profile,
                        .only_config = o->only_config,
                        .shell = o->verb == VERB_SHELL,
                        .home = o->home,
                        .brokered = o->broker_socket || o->proxy_port,
                        .extra_environment = extra,
                }, &findings, ret);
        environment_free(extra);
        findings_print(&findings);
        if (r < 0)
                log_error_errno(r, "Failed to resolve the policy: %m");
        return r < 0 || findings_failed(&findings) ? EXIT_NOT_RUN : 0;
}

/* How this run is connected. Without `proxy` what --proxy-net asks for is left out. */
static int settle_network(const Options *o, const Policy *policy, bool proxy, Network *ret) {
        int r = network_choose(policy, &(NetworkRequest){
                .brokered = o->broker_socket,
                .proxy = proxy && o->proxy_net,
                .proxy_address = {o->proxy_address},
                .proxy_port = o->proxy_port,
                .landlock_abi = policy->n_bind_ports > 0 ? landlock_abi() : 0, /* else nothing depends on it here */
        }, ret);
        return r < 0 ? log_error_errno(r, "Failed to settle the network: %m") : 0;
}

/* Tries, as nothing else tells for sure. */
static bool namespaces_available(bool isolate) {
        int pidfd = -EBADF;
        pid_t pid = isolate ? namespaces_clone(true, -EBADF, &pidfd) : namespaces_clone_user(true, -EBADF, &pidfd);

        if (pid == 0)
                _exit(EXIT_SUCCESS);
        if (pid < 0)
                return false;
        safe_close(pidfd);
        (void) waitpid(pid, NULL, 0);
        return true;
}

int show_verb(const Options *o) {
        _cleanup_(account_done) Account account = {};
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        _cleanup_(network_done) Network network = {};

        if (account_settle(o->user, &account) < 0)
                return EXIT_NOT_RUN;
        int r = run_resolve(o, o->argv, &account, &policy);
        if (r != 0)
                return r;
        bool namespaces = namespaces_available(!o->no_isolate);
        if (settle_network(o, policy, namespaces && pasta_find(), &network) < 0)
                return EXIT_NOT_RUN;
        ShownNetwork shown = {.network = &network, .landlock_abi = landlock_abi(), .namespaces = namespaces, .pasta = pasta_find(),
                              .proxy_asked = o->proxy_net || o->proxy_port};
        if (o->plan || o->no_isolate)
                r = plan_new(policy, o->argv, &network, &plan);
        if (r >= 0 && o->no_isolate)
                shown.gaps = enter_isolation_gaps(plan);
        if (r < 0)
                ;
        else if (o->plan)
                r = plan_print(plan, stdout);
        else
                r = o->json ? show_policy_json(policy, &shown, stdout) : show_policy(policy, &shown, stdout);
        if (r >= 0 && fflush(stdout) != 0)
                r = negative_errno();
        if (r < 0)
                log_error_errno(r, "Failed to print the policy: %m");
        return r < 0 ? EXIT_NOT_RUN : 0;
}

/* The words of the documentation, in two lines. */
static void warn_ports(const Network *network) {
        static const char text[] = "bailey: warning: outbound access is restricted by TCP port only;\n"
                                   "UDP, QUIC, and DNS are not restricted\n";

        if (network_has_ports(network))
                (void) write_all(STDERR_FILENO, text, sizeof(text) - 1);
}

/* --proxy-net cannot be had: the policy's own mode is what remains. *gaps is what that costs. */
static int leave_proxy(const Options *o, const Policy *policy, Network *network, GapSet *gaps) {
        network_done(network);
        if (settle_network(o, policy, false, network) < 0)
                return -EIO;
        if (network->mode == NETWORK_ISOLATED) {
                log_warning("--proxy-net cannot be had here; nothing is let out anyway, so the run has a loopback interface alone");
                return 0;
        }
        *gaps |= (GapSet) 1 << GAP_PROXY_NET;
        if (o->strict && !(o->accepted_gaps & ((GapSet) 1 << GAP_PROXY_NET))) {
                log_error("Refused by --strict: %s (accept it with --accept-gap %s); nothing was run", gap_describe(GAP_PROXY_NET),
                          gap_to_string(GAP_PROXY_NET));
                return -EOPNOTSUPP;
        }
        log_warning("--proxy-net cannot be had here: the host's address stays visible");
        return 0;
}

/* The network is settled; what it asks for is tried. ENTER_NO_PROXY: see enter.h. After success *ret_plan is what was carried out. */
static int enter_network(char *const *argv, const Policy *policy, const Network *network, const RunOptions *options,
                         Plan **ret_plan, RunResult *ret) {
        _cleanup_(plan_freep) Plan *plan = NULL;

        int r = plan_new(policy, argv, network, &plan);
        if (r < 0)
                return log_error_errno(r, "Failed to plan the sandbox: %m%s",
                                       r == -ELOOP ? "; the home became a symbolic link meanwhile, remove it" : "");
        if (!options->no_isolate && home_make_mount_points(policy, plan) < 0)
                return -EIO;
        if (!streq(plan->working_directory, policy->working_directory))
                log_warning("%s cannot be the working directory inside; it is / there", policy->working_directory);
        if (!options->observer || !options->observer->unconfined)
                warn_ports(network);
        r = enter_run(plan, options, ret);
        if (r == 0)
                *ret_plan = TAKE_PTR(plan);
        return r;
}

/* Whoever waits for the command waits for this, too. What is still held is the kernel's to free, which takes it less time. */
_noreturn_ static void end(int status) {
        (void) fflush(NULL);
        _exit(status);
}

static int run_planned(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal, Observer *observer,
                       RunResult *ret) {
        _cleanup_(git_watch_freep) GitWatch *watch = NULL;
        _cleanup_(network_done) Network network = {};
        _cleanup_(plan_freep) Plan *plan = NULL;
        _cleanup_strv_free_ char **appeared = NULL;
        RunResult result = {};
        GapSet gaps = 0;

        if (home_make(policy) < 0 || home_make_configuration(policy) < 0)
                return EXIT_NOT_RUN;
        int r = settle_network(o, policy, true, &network);
        if (r < 0)
                return EXIT_NOT_RUN;
        if (network.mode == NETWORK_PROXY && !pasta_find()) {
                log_warning("pasta is not in " PASTA_PLACES "; install the package passt");
                if (leave_proxy(o, policy, &network, &gaps) < 0)
                        return EXIT_NOT_RUN;
        }
        r = git_watch_begin(policy, &watch);
        if (r < 0) {
                log_error_errno(r, "Failed to look at the repositories that the command may change: %m");
                return EXIT_NOT_RUN;
        }
        const RunOptions options = {
                .no_isolate = o->no_isolate,
                .strict = o->strict,
                .accepted_gaps = o->accepted_gaps,
                .broker_socket = broker,
                .broker_token = o->broker_token_fd,
                .listen_address = {o->listen_address},
                .listen_port = o->listen_port,
                .report = o->report_fd,
                .console_socket = terminal ? terminal->socket : o->console_socket,
                .rows = terminal ? terminal->rows : o->rows,
                .columns = terminal ? terminal->columns : o->columns,
                .error_output = o->stderr_fd,
                .gaps = gaps,
                .observer = observer,
        };
        r = enter_network(argv, policy, &network, &options, &plan, &result);
        if (r == ENTER_NO_PROXY) {
                RunOptions again = options;
                r = leave_proxy(o, policy, &network, &again.gaps);
                if (r >= 0)
                        r = enter_network(argv, policy, &network, &again, &plan, &result);
        }
        if (terminal)
                terminal_end(terminal); /* what is printed from here on comes after the command's last word, in the caller's terminal */
        if (r < 0)
                return EXIT_NOT_RUN;
        *ret = result;
        if (!result.started || (observer && observer->unconfined))
                return result.status;
        if (git_watch_end(watch, &appeared) < 0)
                log_warning("Failed to look at the repositories that the command could change");
        if (o->json)
                closing_print_json(&result, &network, appeared);
        else
                closing_print(&result, &network, o->quiet, appeared);
        if (o->verb == VERB_RUN && !observer)
                end(result.status);
        return result.status;
}

int run_policy(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal) {
        RunResult result;

        return o->explain ? explain_run(o, argv, policy, broker, terminal) : run_planned(o, argv, policy, broker, terminal, NULL, &result);
}

int run_policy_observed(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal, Observer *observer,
                        RunResult *ret) {
        return run_planned(o, argv, policy, broker, terminal, observer, ret);
}

int run_verb(const Options *o) {
        _cleanup_(account_done) Account account = {};
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_close_ int broker = -EBADF;

        /* The account first: what comes after, the broker's socket included, is reached with its rights alone. */
        if (account_settle(o->user, &account) < 0)
                return EXIT_NOT_RUN;
        if (o->broker_socket && connect_broker(o->broker_socket, &broker) < 0)
                return EXIT_NOT_RUN;
        int r = run_resolve(o, o->argv, &account, &policy);
        if (r != 0)
                return r;
        end(run_policy(o, o->argv, policy, broker, NULL));
}
