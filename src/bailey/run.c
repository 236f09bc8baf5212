/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bailey/account.h"
#include "bailey/closing.h"
#include "bailey/enter.h"
#include "bailey/environment.h"
#include "bailey/explain.h"
#include "bailey/git-watch.h"
#include "bailey/home.h"
#include "bailey/layers.h"
#include "bailey/planner.h"
#include "bailey/run.h"
#include "bailey/show.h"
#include "bailey/target.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/path.h"
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
                        .brokered = o->broker_socket,
                        .extra_environment = extra,
                }, &findings, ret);
        environment_free(extra);
        findings_print(&findings);
        if (r < 0)
                log_error_errno(r, "Failed to resolve the policy: %m");
        return r < 0 || findings_failed(&findings) ? EXIT_NOT_RUN : 0;
}

int show_verb(const Options *o) {
        _cleanup_(account_done) Account account = {};
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;

        if (account_settle(o->user, &account) < 0)
                return EXIT_NOT_RUN;
        int r = run_resolve(o, o->argv, &account, &policy);
        if (r != 0)
                return r;
        if (o->plan) {
                r = plan_new(policy, o->argv, false, &plan);
                if (r >= 0)
                        r = plan_print(plan, stdout);
        } else
                r = o->json ? show_policy_json(policy, stdout) : show_policy(policy, stdout);
        if (r >= 0 && fflush(stdout) != 0)
                r = negative_errno();
        if (r < 0)
                log_error_errno(r, "Failed to print the policy: %m");
        return r < 0 ? EXIT_NOT_RUN : 0;
}

/* What this version cannot do is refused or told, never passed over. */
static int check_supported(const Policy *policy) {
        const char *reason;

        if (!policy_network_supported(policy, &reason)) {
                /* Only a file or a profile can ask for it: the floor denies. */
                char **last = policy->files;
                while (last && last[0] && last[1])
                        last++;
                log_error("%s: [network]: refused: %s; nothing was run", policy->egress_layer > FLOOR_LAYER ?
                          policy->layer_names[policy->egress_layer] : last && *last ? *last : "the policy", reason);
                return -EOPNOTSUPP;
        }
        return 0;
}

static int run_planned(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal, Observer *observer,
                       RunResult *ret) {
        _cleanup_(git_watch_freep) GitWatch *watch = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        _cleanup_strv_free_ char **appeared = NULL;
        RunResult result = {};

        if (check_supported(policy) < 0 || home_make(policy) < 0 || home_make_configuration(policy) < 0)
                return EXIT_NOT_RUN;
        int r = plan_new(policy, argv, broker >= 0, &plan);
        if (r < 0) {
                log_error_errno(r, "Failed to plan the sandbox: %m%s",
                                r == -ELOOP ? "; the home became a symbolic link meanwhile, remove it" : "");
                return EXIT_NOT_RUN;
        }
        if (home_make_mount_points(policy, plan) < 0)
                return EXIT_NOT_RUN;
        if (!streq(plan->working_directory, policy->working_directory))
                log_warning("%s cannot be the working directory inside; it is / there", policy->working_directory);

        r = git_watch_begin(policy, &watch);
        if (r < 0) {
                log_error_errno(r, "Failed to look at the repositories that the command may change: %m");
                return EXIT_NOT_RUN;
        }
        r = enter_run(plan, &(RunOptions){
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
                .observer = observer,
        }, &result);
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
                closing_print_json(&result, broker >= 0, appeared);
        else
                closing_print(&result, broker >= 0, o->quiet, appeared);
        return result.status;
}

int run_policy(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal) {
        RunResult result;

        return run_planned(o, argv, policy, broker, terminal, NULL, &result);
}

int run_policy_observed(const Options *o, char *const *argv, const Policy *policy, int broker, Observer *observer, RunResult *ret) {
        return run_planned(o, argv, policy, broker, NULL, observer, ret);
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
        return o->explain ? explain_run(o, policy, broker) : run_policy(o, o->argv, policy, broker, NULL);
}
