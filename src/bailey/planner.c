/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>

#include "bailey/guard.h"
#include "bailey/planner-private.h"
#include "basic/path.h"
#include "basic/text.h"

static void planner_done(Planner *p) {
        for (size_t i = 0; i < p->n_items; i++) {
                free(p->items[i].path);
                free(p->items[i].source);
        }
        for (size_t i = 0; i < p->n_places; i++)
                free(p->places[i].path);
        free(p->items);
        free(p->places);
}

/* Takes nothing; source may be NULL. */
static int add_item(Planner *p, const Item *like) {
        Item *grown = reallocarray(p->items, p->n_items + 1, sizeof(Item));
        if (!grown)
                return -ENOMEM;
        p->items = grown;
        Item *item = &grown[p->n_items++];
        *item = *like;
        item->path = strdup(like->path);
        item->source = like->source ? strdup(like->source) : NULL;
        return item->path && (item->source || !like->source) ? 0 : -ENOMEM;
}

static int add_links(Planner *p, const ResolvedPath *to) {
        int r = 0;
        for (size_t i = 0; i < to->n_links && r >= 0; i++)
                r = add_item(p, &(Item){.type = ITEM_SYMLINK, .path = to->links[i].path, .source = to->links[i].text});
        return r;
}

static int add_access(Planner *p, const char *path, const char *host_path, unsigned rights) {
        Plan *plan = p->plan;
        PlanAccess *grown = reallocarray(plan->accesses, plan->n_accesses + 1, sizeof(PlanAccess));

        if (!grown)
                return -ENOMEM;
        plan->accesses = grown;
        PlanAccess *a = &grown[plan->n_accesses++];
        *a = (PlanAccess){
                .path = strdup(path), .host_path = host_path ? strdup(host_path) : NULL, .rights = (AccessRights) rights};
        return a->path && (a->host_path || !host_path) ? 0 : -ENOMEM;
}

static unsigned access_of(PathRights rights) {
        return (rights & RIGHT_READ ? ACCESS_READ : 0U) | (rights & RIGHT_WRITE ? ACCESS_WRITE : 0U) |
               (rights & RIGHT_EXECUTE ? ACCESS_EXECUTE : 0U);
}

/* ---- which items ---- */

/* A cover hides what lies at a path and a read-only mount keeps it as it is, but whoever may write to a directory above could move
 * that away and make another in its place, which the host would then find there: a hook, a policy. So every directory on the way
 * is a mount, too, where it stands in something writable. */
static int add_anchors(Planner *p, const char *path) {
        _cleanup_free_ char *way = strdup(path);
        int r = way ? 0 : -ENOMEM;

        for (char *slash = way ? strchr(way + 1, '/') : NULL; slash && r >= 0; slash = strchr(slash + 1, '/')) {
                *slash = 0;
                r = add_item(p, &(Item){.type = ITEM_ANCHOR, .path = way, .source = way});
                *slash = '/';
        }
        return r;
}

/* A link on the way to something protected is mounted over itself: it is followed as before, and can be neither moved nor replaced. */
static int add_pins(Planner *p, const ResolvedPath *to) {
        int r = 0;

        for (size_t i = 0; i < to->n_links && r >= 0; i++) {
                const PathLink *link = &to->links[i];
                if (!(policy_rights_at(p->policy, link->path) & RIGHT_WRITE))
                        continue;
                r = add_item(p, &(Item){.type = ITEM_READ_ONLY, .path = link->path, .device = link->device, .inode = link->inode});
                if (r >= 0)
                        r = add_anchors(p, link->path);
        }
        return r;
}

/* What stands at that path must be the same when the steps are taken: what went away for that moment would come back bare. */
static int add_protection(Planner *p, ItemType type, const ResolvedPath *to) {
        int r = add_item(p, &(Item){.type = type, .path = to->real, .device = to->device, .inode = to->inode});
        return r < 0 ? r : add_anchors(p, to->real);
}

/* The same of a path without links. What is not there has nothing to protect. */
static int add_own_protection(Planner *p, ItemType type, const char *path) {
        _cleanup_(resolved_path_done) ResolvedPath to = {};

        int r = path_resolve(path, &to);
        if (r >= 0)
                r = add_pins(p, &to);
        return r < 0 ? r : add_protection(p, type, &to);
}

static int add_grant(Planner *p, const ResolvedPath *to, PathRights rights) {
        _cleanup_free_ char *parent = path_parent(to->real);
        if (!parent)
                return -ENOMEM;
        int r = policy_rights_at(p->policy, parent) & ~(unsigned) rights ? add_anchors(p, to->real) : 0;
        if (r < 0)
                return r;
        r = add_item(p, &(Item){.type = ITEM_GRANT, .path = to->real, .source = to->real, .rights = rights,
                                    .device = to->device, .inode = to->inode});
        return r < 0 ? r : add_access(p, to->real, to->real, access_of(rights));
}

/* The root itself is never bound, what stands in it is: /dev, /proc, /sys and /tmp stay bailey's own. */
static int add_root_grant(Planner *p, PathRights rights) {
        static const char *const own[] = {".", "..", "dev", "proc", "sys", "tmp"};
        DIR *d = opendir("/");
        int r = 0;

        if (!d)
                return -errno;
        for (const struct dirent *e; r >= 0 && (e = readdir(d));) {
                _cleanup_free_ char *path = NULL;
                _cleanup_(resolved_path_done) ResolvedPath to = {};
                bool skip = false;

                for (size_t i = 0; i < ELEMENTSOF(own); i++)
                        skip |= streq(e->d_name, own[i]);
                if (skip)
                        continue;
                r = asprintf(&path, "/%s", e->d_name) < 0 ? -ENOMEM : path_resolve(path, &to);
                if (r < 0 || to.error < 0)
                        continue;
                const PolicyEntry *more = policy_entry_for(p->policy, path);
                if (to.n_links > 0)
                        r = add_links(p, &to);
                else if (!more || streq(more->rule->resolved.real, "/"))
                        r = add_grant(p, &to, rights);
        }
        closedir(d);
        return r;
}

static int add_device(Planner *p, const PolicyEntry *e, bool from_file) {
        const ResolvedPath *to = &e->rule->resolved;
        /* Terminals are set by ioctl, and a device that somebody granted is of no use without. */
        unsigned more = from_file || streq(to->real, "/dev/tty") ? ACCESS_IOCTL : 0U;

        int r = add_item(p, &(Item){.type = ITEM_DEVICE, .path = to->real, .source = to->real, .rights = e->rights,
                                    .device = to->device, .inode = to->inode});
        return r < 0 ? r : add_access(p, to->real, to->real, access_of(e->rights) | more);
}

static int add_entry(Planner *p, const PolicyEntry *e) {
        const PolicyRule *rule = e->rule;
        const char *real = rule->resolved.real;

        if (rule->resolved.error < 0)
                return 0;
        if (!e->rights)
                return rule->deny ? add_protection(p, ITEM_DENY, &rule->resolved) : 0;
        if (e->island)
                return add_protection(p, ITEM_READ_ONLY, &rule->resolved);
        if (streq(real, "/sys") && p->plan->network->mode == NETWORK_LANDLOCK)
                return 0; /* a fresh one comes with a network namespace of one's own */
        if (streq(real, "/proc") || streq(real, "/sys")) {
                int r = add_item(p, &(Item){.type = real[1] == 'p' ? ITEM_PROC : ITEM_SYSFS, .path = (char *) real});
                return r < 0 ? r : add_access(p, real, real, ACCESS_READ);
        }
        if (path_beneath(real, "/proc") || path_beneath(real, "/sys"))
                return 0; /* they are whole and readable or not there */
        if (path_beneath(real, "/dev"))
                return add_device(p, e, rule->layer > FLOOR_LAYER);
        return streq(real, "/") ? add_root_grant(p, e->rights) : add_grant(p, &rule->resolved, e->rights);
}

static int add_policy(Planner *p) {
        const Policy *policy = p->policy;
        _cleanup_strv_free_ char **covers = NULL;
        int r = 0;

        for (size_t i = 0; i < policy->n_entries && r >= 0; i++)
                r = add_entry(p, &policy->entries[i]);
        for (size_t i = 0; i < policy->n_rules && r >= 0; i++) {
                const PolicyRule *rule = &policy->rules[i];
                if (rule->rights && rule->resolved.error == 0)
                        r = add_links(p, &rule->resolved);
                if (r >= 0 && (rule->deny || rule->read_only))
                        r = add_pins(p, &rule->resolved);
        }
        if (r >= 0)
                r = guard_covers(policy, &covers);
        for (char **s = covers; s && *s && r >= 0; s++)
                r = add_own_protection(p, ITEM_COVER, *s);
        for (char **s = policy->files; s && *s && r >= 0; s++)
                r = add_own_protection(p, ITEM_READ_ONLY, *s);
        return r < 0 ? r : add_own_protection(p, ITEM_READ_ONLY, policy->config_directory);
}

static int add_device_tree(Planner *p) {
        static const char *const links[][2] = {
                {"/dev/ptmx", "pts/ptmx"},           {"/dev/fd", "/proc/self/fd"},        {"/dev/stdin", "/proc/self/fd/0"},
                {"/dev/stdout", "/proc/self/fd/1"},  {"/dev/stderr", "/proc/self/fd/2"},
        };
        const Limits *limits = &p->policy->limits;
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(links) && r >= 0; i++)
                r = add_item(p, &(Item){.type = ITEM_SYMLINK, .path = (char *) links[i][0], .source = (char *) links[i][1]});
        if (r >= 0)
                r = add_item(p, &(Item){.type = ITEM_DEVPTS, .path = (char *) "/dev/pts"});
        if (r >= 0)
                r = add_access(p, "/dev/pts", NULL, ACCESS_READ | ACCESS_WRITE | ACCESS_IOCTL);
        if (r >= 0)
                r = add_item(p, &(Item){.type = ITEM_TMPFS, .path = (char *) "/dev/shm", .rights = RIGHT_READ | RIGHT_WRITE,
                                        .size_bytes = limits->shm_bytes == LIMIT_NONE ? 0 : limits->shm_bytes});
        if (r >= 0)
                r = add_access(p, "/dev/shm", NULL, ACCESS_READ | ACCESS_WRITE);
        if (r >= 0)
                r = add_item(p, &(Item){.type = ITEM_TMPFS, .path = (char *) "/tmp",
                                        .rights = RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE,
                                        .size_bytes = limits->tmp_bytes == LIMIT_NONE ? 0 : limits->tmp_bytes});
        return r < 0 ? r : add_access(p, "/tmp", NULL, ACCESS_READ | ACCESS_WRITE | ACCESS_EXECUTE);
}

static int resolve_home_inside(const Policy *policy, ResolvedPath *ret) {
        const char *said = policy_variable(policy, "HOME");
        _cleanup_free_ char *path = NULL;

        int r = path_collapse(said ?: policy->home, &path);
        if (r < 0)
                return r;
        /* The root cannot be covered and these trees are the kernel's: such a HOME is a text and no more. */
        if (streq(path, "/") || path_beneath(path, "/proc") || path_beneath(path, "/sys") || path_beneath(path, "/dev"))
                return path_resolve(policy->home, ret);
        return path_resolve(path, ret);
}

int planner_home_inside(const Policy *policy, char **ret) {
        _cleanup_(resolved_path_done) ResolvedPath inside = {};

        int r = resolve_home_inside(policy, &inside);
        if (r >= 0)
                *ret = TAKE_PTR(inside.real);
        return r;
}

static int add_home(Planner *p) {
        _cleanup_(resolved_path_done) ResolvedPath home = {}, inside = {};
        const PathRights all = RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE;

        int r = path_resolve(p->policy->home_real, &home);
        if (r >= 0 && home.n_links > 0)
                return -ELOOP;
        if (r >= 0)
                r = resolve_home_inside(p->policy, &inside);
        if (r >= 0)
                r = add_item(p, &(Item){.type = ITEM_HOME, .path = inside.real, .source = home.real, .rights = all,
                                        .device = home.device, .inode = home.inode});
        if (r >= 0)
                r = add_links(p, &inside);
        return r < 0 ? r : add_access(p, inside.real, home.real, access_of(all));
}

/* Programs ask who they are; of the host's other accounts nothing shows. */
static int add_file(Planner *p, const char *path, char *text) {
        int r = add_item(p, &(Item){.type = ITEM_FILE, .path = (char *) path, .source = text});
        return r < 0 ? r : add_access(p, path, NULL, ACCESS_READ);
}

static int add_accounts(Planner *p) {
        const char *home = policy_variable(p->policy, "HOME") ?: p->policy->home;
        _cleanup_free_ char *passwd = NULL, *group = NULL;

        int r = account_files(&p->policy->account, home, &passwd, &group);
        if (r >= 0)
                r = add_file(p, "/etc/passwd", passwd);
        return r < 0 ? r : add_file(p, "/etc/group", group);
}

/* ---- what runs ---- */

static int fill_command(Planner *p, char *const *argv) {
        const Policy *policy = p->policy;
        Plan *plan = p->plan;

        int r = strv_extend_list(&plan->argv, argv);
        for (size_t i = 0; i < policy->n_variables && r >= 0; i++)
                r = strv_extend_format(&plan->environment, "%s=%s", policy->variables[i].name, policy->variables[i].value);
        plan->executable = strdup(policy->target);
        /* No directory can be made among the kernel's. */
        bool closed = path_beneath(policy->working_directory, "/proc") || path_beneath(policy->working_directory, "/sys") ||
                      path_beneath(policy->working_directory, "/dev/pts");
        plan->working_directory = strdup(closed ? "/" : policy->working_directory);
        return r < 0 ? r : plan->executable && plan->working_directory ? 0 : -ENOMEM;
}

static int add_network(Planner *p) {
        const Network *n = p->plan->network;
        int r = n->resolver_file ? add_file(p, n->resolver_file_path, n->resolver_file) : 0;

        for (char **s = n->paths; s && *s && r >= 0; s++) {
                _cleanup_(resolved_path_done) ResolvedPath to = {};
                r = path_resolve(*s, &to);
                if (r >= 0 && to.error == 0 && (path_beneath(*s, "/sys") || !policy_rights_at(p->policy, to.real)))
                        r = add_grant(p, &to, RIGHT_READ);
        }
        return r;
}

int plan_new(const Policy *policy, char *const *argv, const Network *network, Plan **ret) {
        _cleanup_(plan_freep) Plan *plan = calloc(1, sizeof(Plan));
        _cleanup_(planner_done) Planner p = {.policy = policy, .plan = plan};
        static int (*const add[])(Planner *p) = {add_policy, add_device_tree, add_home, add_accounts, add_network};

        if (!plan)
                return -ENOMEM;
        plan->network = network;
        plan_set_limits(plan, &policy->limits);
        int r = fill_command(&p, argv);
        if (r >= 0)
                r = add_access(&p, "/", NULL, ACCESS_LIST);
        for (size_t i = 0; i < ELEMENTSOF(add) && r >= 0; i++)
                r = add[i](&p);
        if (r >= 0)
                r = add_item(&p, &(Item){.type = ITEM_DIRECTORY, .path = plan->working_directory});
        if (r >= 0)
                r = planner_add_steps(&p);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(plan);
        return 0;
}
