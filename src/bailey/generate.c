/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/audit-risk.h"
#include "bailey/generate.h"
#include "bailey/grant-set.h"
#include "bailey/network-use.h"
#include "basic/path.h"
#include "basic/text.h"

typedef struct Generator {
        const Trace *trace;
        const GenerateOptions *options;
        GrantSet grants;
        GrantSet devices;
        GrantSet kept;     /* of high risk and not granted: what must stay so where a directory above is granted. With RIGHT_READ it may
                            * be read */
        char **left_out;   /* comments: high-risk, and what no policy can grant */
        NetworkUse network;
        unsigned missing;  /* looked for and not there */
} Generator;

static void generator_done(Generator *g) {
        grant_set_done(&g->grants);
        grant_set_done(&g->devices);
        grant_set_done(&g->kept);
        strv_free(g->left_out);
        network_use_done(&g->network);
}

static int leave_out(Generator *g, const Access *a, const char *reason) {
        _cleanup_free_ char *clean = string_escape_control(a->name);
        char operations[96], *line = NULL;

        access_operations_print(a->operations, operations, sizeof(operations));
        if (!clean || asprintf(&line, "%s: %s (%s)", operations, clean, reason) < 0)
                return -ENOMEM;
        return strv_consume(&g->left_out, line);
}

/* A directory of such things only is one itself. */
static bool is_risky(void *context, const char *directory) {
        const Generator *g = context;
        _cleanup_free_ char *inside = NULL;
        bool risky = false;

        if (asprintf(&inside, "%s/x", directory) >= 0)
                risky = access_risk(&(Access) {.kind = ACCESS_PATH, .name = inside, .operations = ACCESSED_WRITE}, g->trace->home, NULL);
        return risky;
}

static int keep_out(Generator *g, const Access *a, const char *reason) {
        const Access reading = {.kind = ACCESS_PATH, .name = a->name, .operations = ACCESSED_READ};
        bool readable = !access_risk(&reading, g->trace->home, NULL);

        _cleanup_free_ char *parent = path_parent(a->name);
        int r = parent ? leave_out(g, a, reason) : -ENOMEM;

        if (r < 0)
                return r;
        /* What is not there cannot be kept as it is, but the directory that is for such things can. */
        bool there = access(a->name, F_OK) >= 0;
        if (!there && !is_risky(g, parent))
                return 0;
        return grant_set_add(&g->kept, there ? a->name : parent, readable ? RIGHT_READ : 0, a->directory || !there);
}

/* What TOML and the policy's own words in it cannot say. */
static bool can_be_named(const Access *a) {
        return !a->lossy && !strstr(a->name, "${");
}

static bool can_be_granted(const char *path) {
        struct stat st;

        if (path_beneath(path, "/proc") || path_beneath(path, "/sys"))
                return false;
        return !path_beneath(path, "/dev") || (stat(path, &st) >= 0 && S_ISCHR(st.st_mode));
}

/* What is made, renamed or removed in a directory is the directory's; of one that is not there yet, that of the next above. */
static int add_entry_grant(Generator *g, const Access *a, PathRights rights) {
        _cleanup_free_ char *path = path_parent(a->name);

        while (path && !streq(path, "/") && access(path, F_OK) < 0) {
                char *up = path_parent(path);
                free(path);
                path = up;
        }
        if (!path)
                return -ENOMEM;
        const Access above = {.kind = ACCESS_PATH, .name = path, .operations = ACCESSED_WRITE};
        bool never = false;
        const char *risk = access_risk(&above, g->trace->home, &never);
        if (risk && (never || !g->options->include_high_risk))
                return leave_out(g, a, risk);
        return grant_set_add(&g->grants, path, rights | RIGHT_READ | RIGHT_WRITE, true);
}

static PathRights rights_of(const Access *a) {
        unsigned all = a->operations | a->granted;
        PathRights rights = RIGHT_READ;

        if (all & (ACCESSED_WRITE | ACCESSED_ENTRY | ACCESSED_BIND))
                rights |= RIGHT_WRITE;
        if (all & ACCESSED_EXECUTE)
                rights |= RIGHT_EXECUTE;
        return rights;
}

static bool is_work(const Generator *g, const char *path) {
        const char *here = g->trace->working_directory;
        return !path_beneath(g->trace->home, here) && path_beneath(path, here) && !streq(path, here);
}

/* A grant of a link makes it, and is one of what it leads to. */
static int add_link(Generator *g, const Access *a) {
        if (a->directory && !(a->granted & ACCESSED_READ) && !is_work(g, a->name))
                return leave_out(g, a, "a link; a grant would be of all that it leads to");
        return grant_set_add(&g->grants, a->name, rights_of(a), a->directory);
}

static int add_path(Generator *g, const Access *a) {
        const unsigned changes = ACCESSED_WRITE | ACCESSED_ENTRY | ACCESSED_BIND;
        bool never = false;
        const char *risk = access_risk(a, g->trace->home, &never);

        if (a->missing && !(a->operations & changes)) {
                g->missing++;
                return 0;
        }
        if (!can_be_named(a))
                return leave_out(g, a, "a policy cannot say such a name");
        if (risk && (never || !g->options->include_high_risk))
                return keep_out(g, a, risk);
        if (!can_be_granted(a->name))
                return leave_out(g, a, "made anew inside");
        if (path_beneath(a->name, "/dev"))
                return grant_set_add(&g->devices, a->name, rights_of(a), false);
        if (a->link)
                return add_link(g, a);
        /* In the working directory it is the work; elsewhere it may be anything. */
        if (a->directory && a->operations == ACCESSED_LOOK && !is_work(g, a->name))
                return leave_out(g, a, "looked at only; a grant would be of all in it");
        int r = 0;
        if ((a->operations & (ACCESSED_ENTRY | ACCESSED_BIND)) || (a->missing && (a->operations & changes)))
                r = add_entry_grant(g, a, a->operations & ACCESSED_EXECUTE ? RIGHT_EXECUTE : 0);
        if (r >= 0 && !a->missing && (a->operations & ~(unsigned) (ACCESSED_ENTRY | ACCESSED_BIND)))
                r = grant_set_add(&g->grants, a->name, rights_of(a), a->directory);
        return r;
}

static int add_address(Generator *g, const Access *a) {
        const char *risk = access_risk(a, g->trace->home, NULL), *reason = NULL;

        if (risk && !g->options->include_high_risk)
                return leave_out(g, a, risk);
        int r = network_use_add(&g->network, g->trace, a, &reason);
        return r < 0 || !reason ? r : leave_out(g, a, reason);
}

static int collect(Generator *g) {
        int r = 0;

        for (size_t i = 0; i < g->trace->accesses.n && r >= 0; i++) {
                const Access *a = &g->trace->accesses.items[i];
                if (a->kind == ACCESS_PATH)
                        r = add_path(g, a);
                else if (a->kind == ACCESS_ADDRESS)
                        r = add_address(g, a);
                else
                        r = leave_out(g, a, "an abstract socket of a program outside");
        }
        return r;
}

/* Of what a link leads to the two grants are one. */
static void unite_links(Generator *g) {
        for (size_t i = 0; i < g->grants.n; i++) {
                _cleanup_free_ char *real = realpath(g->grants.items[i].path, NULL);
                if (!real || streq(real, g->grants.items[i].path))
                        continue;
                for (size_t k = 0; k < g->grants.n; k++)
                        if (streq(g->grants.items[k].path, real))
                                g->grants.items[i].rights |= g->grants.items[k].rights;
        }
}

/* A directory of depth 3 or more, or of one program in /opt and the like, that holds neither the home nor anything of high risk that
 * was asked for, is granted as a whole. */
static bool may_be_whole(void *context, const char *directory) {
        const Generator *g = context;
        const Access as_a_whole = {.kind = ACCESS_PATH, .name = (char *) directory, .operations = ACCESSED_READ | ACCESSED_WRITE};
        bool own = path_beneath(directory, "/opt") || path_beneath(directory, "/srv");

        if (path_depth(directory) < (own ? 2U : 3U) || path_beneath(directory, "/dev"))
                return false;
        if (access_risk(&as_a_whole, g->trace->home, NULL) && !g->options->include_high_risk)
                return false;
        for (size_t i = 0; i < g->trace->accesses.n; i++) {
                const Access *a = &g->trace->accesses.items[i];
                if (a->kind == ACCESS_PATH && path_beneath(a->name, directory) && access_risk(a, g->trace->home, NULL))
                        return false;
        }
        return true;
}

/* ---- printing ---- */

/* A basic string: what is not plain goes as an escape. */
static void print_string(FILE *f, const char *s) {
        fputc('"', f);
        for (; *s; s++) {
                unsigned char c = (unsigned char) *s;
                if (c == '"' || c == '\\')
                        fprintf(f, "\\%c", c);
                else if (c < 0x20 || c == 0x7f)
                        fprintf(f, "\\u%04x", c);
                else
                        fputc(c, f);
        }
        fputc('"', f);
}

static int print_path(FILE *f, const char *path, const char *home) {
        _cleanup_free_ char *shorter = NULL;
        size_t n = strlen(home);

        if (n > 1 && path_beneath(path, home) && asprintf(&shorter, "~%s", path + n) < 0) {
                shorter = NULL;
                return -ENOMEM;
        }
        print_string(f, shorter ?: path);
        return 0;
}

/* execute and write each come with reading. */
static bool belongs(PathRights rights, PathRights key) {
        return key == RIGHT_READ ? rights == RIGHT_READ : rights & key;
}

static int print_key(FILE *f, const Generator *g, const char *name, PathRights key) {
        bool any = false;
        int r = 0;

        for (size_t i = 0; i < g->grants.n && r >= 0; i++)
                if (belongs(g->grants.items[i].rights, key)) {
                        if (!any)
                                fprintf(f, "%s = [\n", name);
                        any = true;
                        fputs("    ", f);
                        r = print_path(f, g->grants.items[i].path, g->trace->home);
                        fputs(",\n", f);
                }
        if (any)
                fputs("]\n", f);
        return r;
}

/* What was left out stays out, although a directory above it is granted. */
static int print_kept(FILE *f, const Generator *g, const char *name, PathRights rights) {
        bool any = false;
        int r = 0;

        for (size_t i = 0; i < g->kept.n && r >= 0; i++) {
                const Grant *k = &g->kept.items[i];
                bool beneath = false;
                for (size_t n = 0; n < g->grants.n; n++)
                        beneath |= path_beneath(k->path, g->grants.items[n].path) && (g->grants.items[n].rights & ~(unsigned) k->rights);
                if (!beneath || k->rights != rights || access(k->path, F_OK) < 0)
                        continue;
                if (!any)
                        fprintf(f, "%s = [\n", name);
                any = true;
                fputs("    ", f);
                r = print_path(f, k->path, g->trace->home);
                fputs(",\n", f);
        }
        if (any)
                fputs("]\n", f);
        return r;
}

static int print_head(FILE *f, const Generator *g) {
        const Trace *t = g->trace;
        _cleanup_free_ char *target = string_escape_control(g->options->target);

        if (!target)
                return -ENOMEM;
        fprintf(f, "# What %s did%s beyond the policy of its audit. Each line is a grant:\n# read them before they are accepted.\n", target,
                t->unconfined ? ", unconfined," : "");
        if (trace_truncated(t))
                fprintf(f, "# Not all: %llu accesses were lost.\n", (unsigned long long) (t->unreadable + t->dropped));
        if (t->signal > 0)
                fprintf(f, "# Partial: signal %u ended the program.\n", t->signal);
        if (g->missing > 0)
                fprintf(f, "# Left out: %u path%s looked for and not there.\n", g->missing, g->missing == 1 ? "" : "s");
        if (g->left_out)
                fputs("#\n# Not granted; think about each:\n", f);
        for (char **s = g->left_out; s && *s; s++)
                fprintf(f, "#   %s\n", *s);
        return 0;
}

static int print(FILE *f, const Generator *g) {
        int r = print_head(f, g);

        if (r >= 0 && g->grants.n > 0) {
                fputs("\n[filesystem]\n", f);
                r = print_key(f, g, "read", RIGHT_READ);
                if (r >= 0)
                        r = print_key(f, g, "write", RIGHT_WRITE);
                if (r >= 0)
                        r = print_key(f, g, "execute", RIGHT_EXECUTE);
                if (r >= 0)
                        r = print_kept(f, g, "read_only", RIGHT_READ);
                if (r >= 0)
                        r = print_kept(f, g, "deny", 0);
        }
        network_use_print(&g->network, f);
        for (size_t i = 0; i < g->devices.n && r >= 0; i++) {
                fputs("\n[[device]]\npath = ", f);
                print_string(f, g->devices.items[i].path);
                fprintf(f, "\naccess = \"%s\"\n", g->devices.items[i].rights & RIGHT_WRITE ? "rw" : "r");
        }
        return r < 0 ? r : fflush(f) != 0 || ferror(f) ? -EIO : 1;
}

int generate_policy(const Trace *t, const GenerateOptions *options, FILE *f) {
        _cleanup_(generator_done) Generator g = {.trace = t, .options = options};

        int r = collect(&g);
        if (r >= 0)
                unite_links(&g);
        if (r >= 0)
                r = grant_set_simplify(&g.grants, may_be_whole, &g);
        if (r >= 0)
                r = grant_set_simplify(&g.devices, may_be_whole, &g);
        if (r >= 0)
                r = grant_set_simplify(&g.kept, is_risky, &g);
        if (r < 0)
                return r;
        if (g.grants.n + g.devices.n == 0 && !g.left_out && !g.network.beyond)
                return 0;
        return print(f, &g);
}
