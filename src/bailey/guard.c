/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/guard.h"
#include "bailey/planner.h"
#include "basic/path.h"
#include "basic/text.h"

/* Whoever may connect to one of these commands a daemon that is root, or the person's own session. */
static const char *const sockets[] = {
        "/run/dbus",       "/run/systemd",    "/run/user",       "/run/docker",     "/run/docker.sock", "/run/podman",
        "/run/incus",      "/run/lxd",        "/run/containerd", "/run/crio",       "/run/libvirt",     "/run/snapd.socket",
        "/run/errand",     "/run/errand-embedded",
        "/var/lib/incus/unix.socket", "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket",
};

/* For callers who could read them: members of group shadow, mostly. */
static const char *const secrets[] = {
        "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/passwd-", "/etc/group-", "/etc/security/opasswd",
};

/* What in a person's runtime directory may be granted by its own name: a display, and sound. Each is made to be spoken to by programs
 * that are not trusted with more; all else there is the session bus, the user manager, agents that sign and containers. */
static bool is_display_socket(const char *real) {
        const char *rest = startswith(real, "/run/user/");

        if (!rest || !ascii_digit(*rest))
                return false;
        rest += strspn(rest, "0123456789");
        const char *display = startswith(rest, "/wayland-");
        if (display)
                return *display && display[strspn(display, "0123456789")] == 0;
        return streq(rest, "/pulse/native") || streq(rest, "/pipewire-0");
}

static bool under_own_tree(const char *real) {
        return path_beneath(real, "/proc") || path_beneath(real, "/sys") || path_beneath(real, "/dev");
}

typedef struct Check {
        const Policy *policy;
        const PolicyRule *rule;
        Layer *const *layers;
        Findings *findings;
} Check;

static void refuse(const Check *c, const char *why) {
        const ResolvedPath *to = &c->rule->resolved;
        bool elsewhere = !streq(to->real, c->rule->path);

        if (c->layers[c->rule->layer]->from_file)
                finding_error(c->findings, "%s:%u: %s%s%s%s %s", c->layers[c->rule->layer]->name, c->rule->line, c->rule->path,
                              elsewhere ? " (which is " : "", elsewhere ? to->real : "", elsewhere ? ")" : "", why);
        else
                finding_error(c->findings, "%s%s%s%s %s", c->rule->path, elsewhere ? " (which is " : "",
                              elsewhere ? to->real : "", elsewhere ? ")" : "", why);
}

static void warn(const Check *c, const char *text) {
        finding_warning(c->findings, "%s:%u: %s %s", c->layers[c->rule->layer]->name, c->rule->line, c->rule->path, text);
}

/* bailey makes /proc, /sys and /dev itself; of the host's /dev only single character devices can come in. */
static void check_own_trees(const Check *c) {
        const ResolvedPath *to = &c->rule->resolved;

        if (!path_beneath(to->real, "/dev")) {
                if (c->rule->rights != RIGHT_READ)
                        refuse(c, "is made by bailey itself and cannot be granted but for reading");
                return;
        }
        if (streq(to->real, "/dev"))
                refuse(c, "is made by bailey itself; grant single devices");
        else if (to->error == 0 && !S_ISCHR(to->mode))
                refuse(c, "is not a character device; only single ones can be granted");
        else if (c->rule->rights & RIGHT_EXECUTE)
                refuse(c, "is a device and cannot be executed");
}

static void check_sockets(const Check *c) {
        const char *real = c->rule->resolved.real;
        _cleanup_free_ char *above = NULL;

        for (size_t i = 0; i < ELEMENTSOF(sockets); i++) {
                if (path_beneath(real, sockets[i])) {
                        if (!is_display_socket(real))
                                refuse(c, "holds sockets of the system's daemons and is always covered");
                } else if (path_beneath(sockets[i], real)) {
                        struct stat st;
                        if (lstat(sockets[i], &st) < 0)
                                continue;
                        if (string_append(&above, "%s%s", above ? ", " : "", sockets[i]) < 0) {
                                c->findings->oom = true;
                                return;
                        }
                }
        }
        if (above && c->layers[c->rule->layer]->from_file)
                finding_warning(c->findings, "%s:%u: %s is granted, but below it stay covered: %s; other sockets there can be "
                                "connected to", c->layers[c->rule->layer]->name, c->rule->line, c->rule->path, above);
}

static void check_state(const Check *c) {
        const Policy *p = c->policy;
        const char *real = c->rule->resolved.real;

        for (size_t i = 0; i < ELEMENTSOF(secrets); i++)
                if (streq(real, secrets[i]))
                        refuse(c, "is always covered");
        if (!(c->rule->rights & RIGHT_WRITE))
                return;
        if (path_beneath(real, p->state_directory) && !path_beneath(real, p->home_real))
                refuse(c, "is bailey's own state and can never be writable");
        if (path_beneath(real, p->config_directory))
                refuse(c, "is bailey's own configuration and can never be writable");
}

static bool link_is_doubtful(const Policy *p, const PathLink *link) {
        return path_beneath(link->path, p->home_real) || (policy_rights_at(p, link->path) & RIGHT_WRITE);
}

/* A link that a session could have made: it stands where the policy lets a session write. */
static const PathLink *doubtful_link(const Policy *p, const ResolvedPath *to) {
        for (size_t i = 0; i < to->n_links; i++)
                if (link_is_doubtful(p, &to->links[i]))
                        return &to->links[i];
        return NULL;
}

/* What rules that rest on no doubtful link give at real: two planted links must not vouch for each other. */
static PathRights solid_rights_at(const Policy *p, const char *real) {
        const PolicyRule *best = NULL;
        size_t best_length = 0;

        for (size_t i = 0; i < p->n_rules; i++) {
                const PolicyRule *rule = &p->rules[i];
                size_t length = strlen(rule->resolved.real);

                if ((!rule->rights && !rule->deny) || !path_beneath(real, rule->resolved.real) ||
                    doubtful_link(p, &rule->resolved))
                        continue;
                if (!best || length > best_length || (length == best_length && rule->layer > best->layer)) {
                        best = rule;
                        best_length = length;
                }
        }
        return best ? best->rights & ~(best->read_only ? (unsigned) RIGHT_WRITE : 0) : 0;
}

static void check_links(const Check *c) {
        const PathLink *link = doubtful_link(c->policy, &c->rule->resolved);
        _cleanup_free_ char *text = NULL;

        if (!link)
                return;
        if (!c->rule->rights)
                return; /* what is protected over a link is so with the link (planner.c) */
        /* Running from a place is no more than reading it: a session can copy what it reads. */
        unsigned wanted = c->rule->rights & (RIGHT_READ | RIGHT_WRITE);
        if (wanted & ~(unsigned) solid_rights_at(c->policy, c->rule->resolved.real)) {
                if (asprintf(&text, "leads over the link %s, which a session could have made, to a place that is not granted; "
                             "name %s itself if it is meant", link->path, c->rule->resolved.real) < 0)
                        c->findings->oom = true;
                else
                        refuse(c, text);
        }
}

static void check_presence(const Check *c) {
        const ResolvedPath *to = &c->rule->resolved;
        _cleanup_free_ char *text = NULL;

        if (to->error == 0)
                return;
        if (c->rule->is_target)
                refuse(c, "went away");
        else if (c->rule->rights) {
                if (asprintf(&text, "%s; the grant is skipped", to->error == -ENOENT ? "does not exist" : strerror(-to->error)) < 0)
                        c->findings->oom = true;
                else
                        warn(c, text);
        } else {
                _cleanup_free_ char *parent = path_parent(to->real);
                if (!parent)
                        c->findings->oom = true;
                else if (policy_rights_at(c->policy, parent) & RIGHT_WRITE)
                        warn(c, "does not exist, so there is nothing to protect: a session can make it");
        }
}

/* A grant of the person's own home reaches everything that runs at the next login. */
static void check_breadth(const Check *c) {
        if (!(c->rule->rights & RIGHT_WRITE))
                return;
        if (path_beneath(c->policy->account.home, c->rule->resolved.real) && !streq(c->policy->account.home, "/"))
                warn(c, "makes the real home writable, with its shell start-up files, autostart entries and user units");
        if (streq(c->rule->resolved.real, "/tmp"))
                warn(c, "replaces the private /tmp by the host's");
}

/* The home is writable whatever the policy says of it, and may show at another path, where no cover stands. What must not be
 * there: what no policy can grant, and what this one protects. */
static const char *find_in_home(const Policy *p, const char *home, const char *inside) {
        for (size_t i = 0; i < ELEMENTSOF(sockets); i++)
                if (path_beneath(sockets[i], home) || path_beneath(home, sockets[i]))
                        return sockets[i];
        for (size_t i = 0; i < ELEMENTSOF(secrets); i++)
                if (path_beneath(secrets[i], home))
                        return secrets[i];
        if (path_beneath(p->state_directory, home))
                return p->state_directory;
        if (path_beneath(p->config_directory, home) || path_beneath(home, p->config_directory))
                return p->config_directory;
        if (streq(home, inside))
                return NULL;
        for (char **file = p->files; file && *file; file++)
                if (path_beneath(*file, home))
                        return *file;
        for (size_t i = 0; i < p->n_entries; i++)
                if (path_beneath(p->entries[i].rule->resolved.real, home) && p->entries[i].rule->resolved.error == 0 &&
                    !(p->entries[i].rights & RIGHT_WRITE) && !p->entries[i].rule->is_target)
                        return p->entries[i].rule->resolved.real;
        return NULL;
}

static int check_home(const Policy *p, Findings *findings) {
        _cleanup_(resolved_path_done) ResolvedPath home = {}, account_home = {};
        _cleanup_free_ char *inside = NULL;

        int r = path_resolve(p->home, &home);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                finding_error(findings, "The home %s: %s", p->home, strerror(-r));
                return 0;
        }
        r = planner_home_inside(p, &inside);
        if (r >= 0 && path_resolve(p->account.home, &account_home) == -ENOMEM)
                r = -ENOMEM;
        if (r < 0)
                return r;
        const PathLink *link = doubtful_link(p, &home);
        const char *own = account_home.real ?: p->account.home;
        bool real = !streq(own, "/") && path_beneath(own, home.real);
        const char *held = find_in_home(p, home.real, inside);
        if (streq(home.real, "/") || real || under_own_tree(home.real))
                finding_error(findings, "The home %s cannot be %s; name a directory of its own", p->home,
                              real ? "the real home or hold it" : "that place");
        else if (held)
                finding_error(findings, "The home %s cannot be where %s is, which is never writable or protected by this policy; "
                              "name a directory of its own", p->home, held);
        else if (!p->home_name && link)
                finding_error(findings, "The home %s leads over the link %s, which a session could have made, to %s; "
                              "name the place itself", p->home, link->path, home.real);
        return 0;
}

int guard_check(const Policy *p, Layer *const *layers, Findings *findings) {
        for (size_t i = 0; i < p->n_rules; i++) {
                const PolicyRule *rule = &p->rules[i];
                bool from_file = layers[rule->layer]->from_file;
                Check c = {.policy = p, .rule = rule, .layers = layers, .findings = findings};

                if (rule->rights && (from_file || rule->is_target)) {
                        if (under_own_tree(rule->resolved.real))
                                check_own_trees(&c);
                        check_sockets(&c);
                        check_state(&c);
                }
                if (from_file || rule->is_target) {
                        check_links(&c);
                        check_presence(&c);
                }
                if (from_file)
                        check_breadth(&c);
        }
        if (!(policy_rights_at(p, p->target) & RIGHT_EXECUTE))
                finding_error(findings, "The policy does not let %s be executed; grant it with [filesystem] execute", p->target);
        return check_home(p, findings);
}

int guard_check_config(const Policy *p, const char *config, Findings *findings) {
        _cleanup_(resolved_path_done) ResolvedPath to = {};
        _cleanup_free_ char *whole = NULL, *path = NULL;

        if (asprintf(&whole, "%s%s%s", config[0] == '/' ? "" : p->working_directory, config[0] == '/' ? "" : "/", config) < 0)
                return -ENOMEM;
        int r = path_collapse(whole, &path);
        if (r >= 0)
                r = path_resolve(path, &to);
        if (r < 0)
                return r == -ENOMEM ? r : 0; /* it was read, by a name that is no file's: a descriptor's */
        const PathLink *link = doubtful_link(p, &to);
        if (link && !under_own_tree(link->path))
                finding_warning(findings, "--config %s leads over the link %s, which the policy lets a session replace; name %s itself",
                                config, link->path, to.real);
        return 0;
}

/* Adds a path to cover when it exists and lies in something granted. Each cover costs every start a mount, so what the account
 * cannot read anyway is left alone where reading is all that matters. */
static int add_cover(const Policy *p, const char *path, bool always, char ***list) {
        ResolvedPath to = {};

        if (!always && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
                return 0;
        int r = path_resolve(path, &to);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (to.error == 0 && policy_rights_at(p, to.real) && !strv_contains(*list, to.real))
                r = strv_extend(list, to.real);
        resolved_path_done(&to);
        return r;
}

static int add_host_keys(const Policy *p, char ***list) {
        DIR *d = opendir("/etc/ssh");
        int r = 0;

        if (!d)
                return 0;
        for (const struct dirent *e; r >= 0 && (e = readdir(d));)
                if (startswith(e->d_name, "ssh_host_") && endswith(e->d_name, "_key")) {
                        _cleanup_free_ char *path = NULL;
                        r = asprintf(&path, "/etc/ssh/%s", e->d_name) < 0 ? -ENOMEM : add_cover(p, path, false, list);
                }
        closedir(d);
        return r;
}

/* An errandd of the account's own has its socket in one of these, see errandd(8). What is in /run/user is covered with that. */
static int add_runtime_directory(const Policy *p, const char *base, bool private, char ***list) {
        _cleanup_free_ char *whole = NULL, *path = NULL;

        if (!base || base[0] != '/')
                return 0;
        if ((private ? asprintf(&whole, "%s/errand", base) : asprintf(&whole, "%s/errand-%u", base, p->account.uid)) < 0) {
                whole = NULL;
                return -ENOMEM;
        }
        int r = path_collapse(whole, &path);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        return add_cover(p, path, true, list);
}

static int compare_strings(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

int guard_covers(const Policy *p, char ***ret) {
        _cleanup_strv_free_ char **list = NULL;
        int r = add_host_keys(p, &list);

        for (size_t i = 0; i < ELEMENTSOF(secrets) && r >= 0; i++)
                r = add_cover(p, secrets[i], false, &list);
        for (size_t i = 0; i < ELEMENTSOF(sockets) && r >= 0; i++)
                r = add_cover(p, sockets[i], true, &list);
        if (r >= 0)
                r = add_runtime_directory(p, getenv("XDG_RUNTIME_DIR"), true, &list);
        if (r >= 0)
                r = add_runtime_directory(p, getenv("TMPDIR"), false, &list);
        if (r >= 0)
                r = add_runtime_directory(p, "/tmp", false, &list);
        if (r >= 0)
                r = add_cover(p, p->state_directory, true, &list);
        if (r < 0)
                return r;
        if (list)
                qsort(list, strv_length(list), sizeof(char *), compare_strings);
        *ret = TAKE_PTR(list);
        return 0;
}
