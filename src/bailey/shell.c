/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "bailey/account.h"
#include "bailey/directories.h"
#include "bailey/resolve.h"
#include "bailey/run.h"
#include "bailey/shell.h"
#include "basic/log.h"
#include "basic/path.h"
#include "basic/text.h"

/* The person's own; a name that is not a path would be looked for who knows where. */
static const char *find_shell(const Account *a) {
        const char *said = a->changed ? NULL : getenv("SHELL");

        if (said && said[0] == '/' && access(said, X_OK) == 0)
                return said;
        if (said && *said)
                log_warning("SHELL=%s is not an absolute path of a program; the shell is /bin/sh", said);
        return "/bin/sh";
}

/* What a policy there grants with "." is everything, and what it protects has to be listed. */
static void warn_home(const Policy *p) {
        ResolvedPath home = {};

        if (path_resolve(directory_home(&p->account), &home) < 0)
                return;
        if (!streq(home.real, "/") && path_beneath(home.real, p->working_directory))
                log_warning("%s %s: a grant of this directory reaches every file of yours, and none of them is a project; start the shell "
                            "in a directory of its own", p->working_directory,
                            streq(home.real, p->working_directory) ? "is your home directory" : "holds your home directory");
        resolved_path_done(&home);
}

static int run_shell(const Options *o, const Account *account, char *const *argv) {
        _cleanup_(policy_freep) Policy *policy = NULL;
        Terminal terminal = {.socket = -EBADF};

        int r = run_resolve(o, argv, account, &policy);
        if (r != 0)
                return r;
        warn_home(policy);
        if (!terminal_present())
                return run_policy(o, argv, policy, -EBADF, NULL);
        if (terminal_start(&terminal) < 0)
                return EXIT_NOT_RUN;
        r = run_policy(o, argv, policy, -EBADF, &terminal);
        terminal_end(&terminal);
        return r;
}

int shell_verb(const Options *o) {
        _cleanup_(account_done) Account account = {};
        _cleanup_strv_free_ char **argv = NULL;

        if (account_settle(o->user, &account) < 0)
                return EXIT_NOT_RUN;
        if (strv_extend(&argv, find_shell(&account)) < 0 || strv_extend_list(&argv, o->argv) < 0) {
                log_oom();
                return EXIT_NOT_RUN;
        }
        return run_shell(o, &account, argv);
}
