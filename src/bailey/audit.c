/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bailey/audit-notify.h"
#include "bailey/audit-risk.h"
#include "bailey/audit.h"
#include "bailey/directories.h"
#include "bailey/generate.h"
#include "bailey/run.h"
#include "bailey/target.h"
#include "bailey/trace.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"

/* ---- bailey audit ---- */

static bool routine_look(const Access *a) {
        return a->missing && !(a->operations & (ACCESSED_WRITE | ACCESSED_ENTRY | ACCESSED_BIND));
}

static int print_access(const Access *a, const char *risk) {
        _cleanup_free_ char *clean = string_escape_control(a->name);
        char operations[96];

        if (!clean)
                return -ENOMEM;
        access_operations_print(a->operations, operations, sizeof(operations));
        fprintf(stderr, "  %-15s %s%s%s%s%s\n", operations, a->kind == ACCESS_ABSTRACT ? "@" : "", clean, risk ? "  (" : "", risk ?: "",
                risk ? ")" : "");
        return 0;
}

/* One of the two parts; the number of lines. */
static int print_part(const Trace *t, const char *title, bool high) {
        int n = 0;

        for (size_t i = 0; i < t->accesses.n; i++) {
                const Access *a = &t->accesses.items[i];
                const char *risk = access_risk(a, t->home, NULL);

                if (!!risk != high || (!high && routine_look(a)))
                        continue;
                if (n++ == 0)
                        fprintf(stderr, "%s\n", title);
                if (print_access(a, risk) < 0)
                        return log_oom();
        }
        return n;
}

static void print_findings(const Trace *t) {
        unsigned missing = 0;

        int high = print_part(t, "high risk, not granted:", true);
        int routine = print_part(t, "not granted:", false);
        for (size_t i = 0; i < t->accesses.n; i++)
                missing += routine_look(&t->accesses.items[i]) && !access_risk(&t->accesses.items[i], t->home, NULL);
        if (missing > 0)
                fprintf(stderr, "not granted, and not there: %u path%s\n", missing, missing == 1 ? "" : "s");
        if (high == 0 && routine == 0)
                log_info("the policy grants everything that was seen");
        if (trace_truncated(t))
                log_warning("not everything was seen: what %llu calls do could not be told, and %llu accesses were too many to keep",
                            (unsigned long long) t->unreadable, (unsigned long long) t->dropped);
}

static int fill_trace(Trace *t, const Policy *policy) {
        t->target = strdup(policy->target);
        t->working_directory = strdup(policy->working_directory);
        t->home = strdup(directory_home(&policy->account) ?: "/");
        t->started = now_realtime();
        return t->target && t->working_directory && t->home ? 0 : -ENOMEM;
}

/* In a sandbox the call is refused whoever is read. */
static bool memory_readable(void) {
        char from = 0, to = 0;
        const struct iovec local = {&to, 1}, remote = {&from, 1};

        return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

int audit_run(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal, Audit *a) {
        RunResult result = {};

        if (fill_trace(&a->trace, policy) < 0)
                return log_oom(), EXIT_NOT_RUN;
        if (!memory_readable()) {
                log_error("An audit reads what the program passes to the kernel, and that is forbidden here: is this a sandbox? Nothing was run");
                return EXIT_NOT_RUN;
        }
        if (o->unconfined)
                log_warning("unconfined: this run is only watched, and the program may do all that you may do");
        int status = run_policy_observed(o, argv, policy, broker, terminal, &a->observer, &result);
        a->trace.ended = now_realtime();
        a->trace.status = (unsigned) status & 0xffU;
        a->trace.signal = (unsigned) result.signal & 0xffU;
        access_list_sort(&a->trace.accesses);
        return status;
}

static int run_audited(const Options *o, const Policy *policy, Audit *a, const TraceFile *file) {
        int status = audit_run(o, o->argv, policy, -EBADF, NULL, a);

        if (a->trace.calls == 0)
                return status; /* nothing was run, and that was said */
        print_findings(&a->trace);
        if (o->save_trace && trace_file_write(file, &a->trace) < 0)
                return EXIT_FAILURE;
        return status;
}

int audit_verb(const Options *o) {
        _cleanup_(account_done) Account account = {};
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_(trace_file_done) TraceFile file = TRACE_FILE_NONE;
        Audit a;

        if (account_settle(o->user, &account) < 0 || (o->save_trace && trace_file_open(o->save_trace, &file) < 0))
                return EXIT_NOT_RUN;
        int r = run_resolve(o, o->argv, &account, &policy);
        if (r != 0)
                return r;
        audit_init(&a, o->unconfined);
        r = run_audited(o, policy, &a, &file);
        audit_done(&a);
        return r;
}

/* ---- bailey profile generate ---- */

static int read_trace(const char *path, Trace *ret) {
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t size = 0;

        _cleanup_close_ int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return log_error_errno(errno, "%s: the trace cannot be opened: %m", path);
        if (!S_ISREG(st.st_mode)) {
                log_error("%s is no file; give the one that bailey audit --save-trace wrote", path);
                return -EINVAL;
        }
        int r = read_fd_full(fd, TRACE_SIZE_MAX, &text, &size);
        if (r < 0)
                return log_error_errno(r, "%s: the trace cannot be read: %m", path);
        r = trace_parse(text, size, ret);
        if (r == -EBADMSG) {
                log_error("%s is not a trace of this version of bailey, or was changed; audit the program again", path);
                return r;
        }
        return r < 0 ? log_error_errno(r, "%s: the trace cannot be read: %m", path) : 0;
}

static int check_trace(const Options *o, const Trace *t, const char *target) {
        char real[PATH_MAX];

        if (!streq(t->target, target) && (!realpath(target, real) || !streq(t->target, real))) {
                log_error("%s is a trace of %s, not of %s", o->trace, t->target, target);
                return -EINVAL;
        }
        if (trace_truncated(t) && !o->accept_truncated) {
                log_error("%s does not have everything: %llu accesses were lost. Audit again, or take what there is with --accept-truncated",
                          o->trace, (unsigned long long) (t->unreadable + t->dropped));
                return -ENODATA;
        }
        return 0;
}

int profile_generate_verb(const Options *o) {
        _cleanup_(trace_done) Trace trace = {};
        _cleanup_free_ char *target = NULL;

        if (read_trace(o->trace, &trace) < 0 || target_find(o->target, &target) < 0 || check_trace(o, &trace, target) < 0)
                return EXIT_FAILURE;
        access_list_sort(&trace.accesses);
        int r = generate_policy(&trace, &(GenerateOptions) {.target = target, .include_high_risk = o->include_high_risk}, stdout);
        if (r == 0)
                log_error("%s has nothing that its policy did not grant: the program needs no more", o->trace);
        if (r < 0)
                log_error_errno(r, "Failed to print the policy: %m");
        return r > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
