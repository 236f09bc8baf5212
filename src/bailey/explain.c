/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "bailey/audit-risk.h"
#include "bailey/audit.h"
#include "bailey/explain.h"
#include "basic/log.h"
#include "basic/path.h"
#include "basic/text.h"

#define EXPLAINED_MAX 40U /* lines; what comes after them is for an audit */

/* What was not there anyway was not refused by the policy. */
static bool refused(const Access *a) {
        if (a->kind == ACCESS_ABSTRACT)
                return a->operations & ACCESSED_CONNECT;
        return a->kind == ACCESS_ADDRESS || !a->missing || (a->operations & (ACCESSED_WRITE | ACCESSED_ENTRY | ACCESSED_BIND));
}

/* The rule that refuses: one that takes away, or none. */
static void print_rule(const Policy *policy, const Access *a) {
        const PolicyEntry *e = a->kind == ACCESS_PATH ? policy_entry_for(policy, a->name) : NULL;
        bool taken = e && (e->rule->deny || e->rule->read_only);
        _cleanup_free_ char *layer = taken ? string_escape_control(policy->layer_names[e->rule->layer]) : NULL;

        if (!taken || !layer)
                fputs("no rule grants it", stderr);
        else
                fprintf(stderr, "%s in %s, line %u", e->rule->deny ? "denied" : "read-only", layer, e->rule->line);
}

static const char *key_of(const Access *a) {
        if (a->operations & (ACCESSED_WRITE | ACCESSED_ENTRY | ACCESSED_BIND))
                return "write";
        return a->operations & ACCESSED_EXECUTE ? "execute" : "read";
}

/* The directory, for what is made in it; as far as it is there. */
static char *place_of(const Access *a) {
        char *path = strdup(a->name);
        bool above = a->operations & (ACCESSED_ENTRY | ACCESSED_BIND);

        while (path && !streq(path, "/") && (above || access(path, F_OK) < 0)) {
                char *up = path_parent(path);
                free(path);
                path = up;
                above = false;
        }
        return path;
}

static int print_remedy(const Policy *policy, const Access *a, const char *home) {
        _cleanup_free_ char *path = NULL, *clean = NULL;
        bool never = false;
        const char *risk = access_risk(a, home, &never);

        if (risk)
                fprintf(stderr, "; %s: %s", never ? "no policy can" : "think first", risk);
        if (never)
                return 0;
        if (a->kind == ACCESS_ADDRESS) {
                if (a->operations & ACCESSED_BIND)
                        fprintf(stderr, "; [network] bind_ports = [%s]", strrchr(a->name, ':') + 1);
                else
                        fprintf(stderr, "; [network] egress_allow = [\"%s\"]", a->name);
                return 0;
        }
        const PolicyEntry *e = policy_entry_for(policy, a->name);
        if (e && e->rule->deny)
                return 0; /* whoever wrote that meant it */
        if (path_beneath(a->name, "/dev")) {
                fputs("; a [[device]] of that path", stderr);
                return 0;
        }
        path = place_of(a);
        clean = path ? string_escape_control(path) : NULL;
        if (!clean)
                return -ENOMEM;
        fprintf(stderr, "; [filesystem] %s = [\"%s\"]", key_of(a), clean);
        return 0;
}

static int print_refusal(const Policy *policy, const Trace *t, const Access *a) {
        _cleanup_free_ char *clean = string_escape_control(a->name), *command = string_escape_control(a->command);
        char operations[96];

        if (!clean || !command)
                return -ENOMEM;
        access_operations_print(a->operations, operations, sizeof(operations));
        fprintf(stderr, "  %s %s%s (%s, %d): ", operations, a->kind == ACCESS_ABSTRACT ? "@" : "", clean, command, (int) a->pid);
        print_rule(policy, a);
        int r = print_remedy(policy, a, t->home);
        fputc('\n', stderr);
        return r;
}

static void explain(const Policy *policy, const Trace *t, bool failed) {
        unsigned n = 0;

        for (size_t i = 0; i < t->accesses.n; i++) {
                if (!refused(&t->accesses.items[i]) || n++ >= EXPLAINED_MAX)
                        continue;
                if (n == 1)
                        fputs("refused by the policy, and what would grant it:\n", stderr);
                if (print_refusal(policy, t, &t->accesses.items[i]) < 0) {
                        log_oom();
                        return;
                }
        }
        if (n == 0 && failed)
                log_info("the policy refused nothing that was seen; the command failed by itself");
        if (n > EXPLAINED_MAX)
                log_info("and %u more; bailey audit lists all", n - EXPLAINED_MAX);
        if (trace_truncated(t))
                log_warning("not everything was seen");
}

int explain_run(const Options *o, char *const *argv, const Policy *policy, int broker, Terminal *terminal) {
        Audit a;

        audit_init(&a, false);
        int status = audit_run(o, argv, policy, broker, terminal, &a);
        if ((status != 0 || o->verb == VERB_SHELL) && a.trace.calls > 0)
                explain(policy, &a.trace, status != 0);
        audit_done(&a);
        return status;
}
