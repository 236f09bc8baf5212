/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <sys/stat.h>

#include "bailey/guard.h"
#include "bailey/planner.h"
#include "basic/path.h"
#include "basic/text.h"

/* Everything that has to stand somewhere inside is an item with a path. Items are sorted shallow before deep, then each becomes
 * steps by what lies under it already: a host tree that was bound there (mount points exist, a deny must cover), or a place
 * of our own (the new root's skeleton, a tmpfs, a cover: directories are made, a deny has nothing to hide). */
typedef enum ItemType {
        /* Of two at one path the first makes the mount. */
        ITEM_PROC,
        ITEM_SYSFS,
        ITEM_DEVPTS,
        ITEM_HOME,
        ITEM_GRANT,
        ITEM_DEVICE,
        ITEM_TMPFS,
        ITEM_DENY,      /* the policy's */
        ITEM_COVER,     /* bailey's own deny */
        ITEM_READ_ONLY, /* an island, a policy file in force */
        ITEM_ANCHOR,    /* a directory on the way to something protected: as a mount it can be neither renamed nor removed */
        ITEM_FILE,
        ITEM_SYMLINK,
        ITEM_DIRECTORY,
} ItemType;

typedef struct Item {
        ItemType type;
        char *path;
        char *source; /* host path, link text or content */
        PathRights rights;
        uint64_t size_bytes;
        dev_t device;
        ino_t inode;
} Item;

/* A mount that was planned. */
typedef struct Place {
        char *path;
        bool host;   /* shows a host tree */
        bool same;   /* at its own path: what exists on the host exists here */
        bool closed; /* proc, sysfs, devpts: nothing can be made in it */
        PathRights rights;
} Place;

typedef struct Planner {
        const Policy *policy;
        Plan *plan;
        Item *items;
        size_t n_items;
        Place *places;
        size_t n_places;
} Planner;

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

/* ---- from items to steps ---- */

static const Place *place_of(const Planner *p, const char *path) {
        const Place *best = NULL;

        for (size_t i = 0; i < p->n_places; i++)
                /* Of two at one path the later lies on top. */
                if (path_beneath(path, p->places[i].path) && (!best || strlen(p->places[i].path) >= strlen(best->path)))
                        best = &p->places[i];
        return best;
}

static int add_place(Planner *p, const char *path, const Place *like) {
        Place *grown = reallocarray(p->places, p->n_places + 1, sizeof(Place));

        if (!grown)
                return -ENOMEM;
        p->places = grown;
        grown[p->n_places] = *like;
        grown[p->n_places].path = strdup(path);
        return grown[p->n_places++].path ? 0 : -ENOMEM;
}

static int add_step(Planner *p, StepType type, const Item *item) {
        Plan *plan = p->plan;
        PlanStep *grown = reallocarray(plan->steps, plan->n_steps + 1, sizeof(PlanStep));

        if (!grown)
                return -ENOMEM;
        plan->steps = grown;
        PlanStep *s = &grown[plan->n_steps++];
        bool content = type == STEP_FILE, source = item->source && !content;
        *s = (PlanStep){
                .type = type,
                .flags = (StepFlags) ((item->rights & RIGHT_WRITE ? STEP_WRITABLE : 0) |
                                      (item->rights & RIGHT_EXECUTE ? STEP_EXECUTABLE : 0)),
                .target = strdup(item->path),
                .source = source ? strdup(item->source) : NULL,
                .content = content ? strdup(item->source) : NULL,
                .size_bytes = item->size_bytes,
                .mode = type == STEP_TMPFS ? (item->type == ITEM_TMPFS ? 01777 : 0111) : type == STEP_DIRECTORY ? 0755 : 0,
                .device = item->device,
                .inode = item->inode,
        };
        return s->target && (s->source || !source) && (s->content || !content) ? 0 : -ENOMEM;
}

/* A directory of our own, unless it is there: by an earlier step or as a place. */
static int add_directory(Planner *p, const Place *under, const char *path) {
        if (under->host || under->closed || streq(under->path, path))
                return 0;
        for (size_t i = 0; i < p->plan->n_steps; i++)
                if (p->plan->steps[i].type == STEP_DIRECTORY && path_beneath(p->plan->steps[i].target, path))
                        return 0;
        return add_step(p, STEP_DIRECTORY, &(Item){.path = (char *) path});
}

static int add_parents(Planner *p, const Place *under, const char *path) {
        _cleanup_free_ char *parent = path_parent(path);
        return parent ? add_directory(p, under, parent) : -ENOMEM;
}

static int plan_mount(Planner *p, const Item *item, const Place *under) {
        static const StepType types[] = {
                [ITEM_PROC] = STEP_PROC, [ITEM_SYSFS] = STEP_SYSFS,   [ITEM_DEVPTS] = STEP_DEVPTS, [ITEM_HOME] = STEP_BIND,
                [ITEM_GRANT] = STEP_BIND, [ITEM_DEVICE] = STEP_DEVICE, [ITEM_TMPFS] = STEP_TMPFS,
        };
        bool host = item->type == ITEM_HOME || item->type == ITEM_GRANT;
        Place place = {
                .host = host,
                .same = host && streq(item->source, item->path),
                .closed = item->type == ITEM_PROC || item->type == ITEM_SYSFS || item->type == ITEM_DEVPTS,
                .rights = item->rights,
        };

        if (streq(under->path, item->path) && !streq(item->path, "/"))
                return 0;
        if (item->type == ITEM_GRANT && under->host && under->same && under->rights == item->rights)
                return 0; /* shown already */
        if (item->type == ITEM_GRANT && under->host && (under->rights & ~(unsigned) item->rights))
                p->plan->nested_read_only = true;
        int r = add_parents(p, under, item->path);
        if (r >= 0)
                r = add_step(p, types[item->type], item);
        return r < 0 ? r : add_place(p, item->path, &place);
}

/* Something is to stand below a path that is covered: a grant, the home, the working directory. */
static bool holds_more(const Planner *p, const char *path) {
        for (size_t i = 0; i < p->n_items; i++) {
                ItemType t = p->items[i].type;
                bool stands = t == ITEM_GRANT || t == ITEM_HOME || t == ITEM_DEVICE || t == ITEM_FILE || t == ITEM_DIRECTORY;
                if (stands && path_beneath(p->items[i].path, path) && !streq(p->items[i].path, path))
                        return true;
        }
        return false;
}

/* What a path leads to on the host is what it leads to inside only where the host's tree is at its own place. */
static Item as_seen(const Item *item, const Place *under) {
        Item seen = *item;

        if (!under->host || !under->same)
                seen.inode = 0;
        return seen;
}

static int plan_cover(Planner *p, const Item *item, const Place *under) {
        bool on_home = under->host && streq(under->path, item->path) && !under->same;

        if ((!under->host && !under->closed) || on_home)
                return 0;
        if (item->type == ITEM_DENY)
                p->plan->nested_deny = true;
        /* A cover is empty and stays so: what has to hold more is a tmpfs of its own, which can be passed but not read. */
        const Item seen = as_seen(item, under);
        int r = add_step(p, holds_more(p, item->path) ? STEP_TMPFS : STEP_COVER, &seen);
        return r < 0 ? r : add_place(p, item->path, &(Place){.host = false});
}

static int plan_read_only(Planner *p, const Item *item, const Place *under) {
        if (!under->host || !(under->rights & RIGHT_WRITE))
                return 0;
        Place place = *under;
        place.rights &= ~(unsigned) RIGHT_WRITE;
        p->plan->nested_read_only = true;
        const Item seen = as_seen(item, under);
        int r = add_step(p, STEP_READ_ONLY, &seen);
        return r < 0 ? r : add_place(p, item->path, &place);
}

static int plan_anchor(Planner *p, const Item *item, const Place *under) {
        _cleanup_(resolved_path_done) ResolvedPath to = {};

        if (!under->host || !under->same || !(under->rights & RIGHT_WRITE) || streq(under->path, item->path))
                return 0;
        int r = path_resolve(item->path, &to);
        if (r < 0)
                return r;
        if (to.error < 0)
                return 0; /* nor is what would be protected there */
        if (to.n_links > 0)
                return -ESTALE; /* a moment ago it was a directory */
        Item bind = *item;
        bind.rights = under->rights;
        bind.device = to.device;
        bind.inode = to.inode;
        const Place place = *under; /* places may move */
        r = add_step(p, STEP_BIND, &bind);
        return r < 0 ? r : add_place(p, item->path, &place);
}

static int plan_item(Planner *p, const Item *item) {
        const Place *found = place_of(p, item->path);
        struct stat st;
        int r;

        if (!found)
                return -EINVAL; /* the root is the first place */
        const Place under = *found; /* places may move */

        switch (item->type) {
        case ITEM_DENY:
        case ITEM_COVER:
                return plan_cover(p, item, &under);
        case ITEM_READ_ONLY:
                return plan_read_only(p, item, &under);
        case ITEM_ANCHOR:
                return plan_anchor(p, item, &under);
        case ITEM_SYMLINK:
        case ITEM_FILE:
                /* Nothing can be made in the host's /etc, and a host without that file has nothing to hide in it. */
                if (item->type == ITEM_FILE && under.host && (lstat(item->path, &st) < 0 || !S_ISREG(st.st_mode)))
                        return 0;
                if (under.closed || (item->type == ITEM_SYMLINK && (under.host || streq(under.path, item->path))))
                        return 0;
                r = add_parents(p, &under, item->path);
                return r < 0 ? r : add_step(p, item->type == ITEM_FILE ? STEP_FILE : STEP_SYMLINK, item);
        case ITEM_DIRECTORY:
                return add_directory(p, &under, item->path);
        default:
                return under.closed ? 0 : plan_mount(p, item, &under);
        }
}

static int compare_items(const void *a, const void *b) {
        const Item *x = a, *y = b;
        unsigned dx = path_depth(x->path), dy = path_depth(y->path);

        if (dx != dy)
                return dx < dy ? -1 : 1;
        int c = strcmp(x->path, y->path);
        return c ?: (x->type > y->type) - (x->type < y->type);
}

static int plan_items(Planner *p) {
        qsort(p->items, p->n_items, sizeof(Item), compare_items);
        int r = add_place(p, "/", &(Place){.host = false});
        for (size_t i = 0; i < p->n_items && r >= 0; i++) {
                const Item *before = i > 0 ? &p->items[i - 1] : NULL;
                if (!before || before->type != p->items[i].type || !streq(before->path, p->items[i].path))
                        r = plan_item(p, &p->items[i]);
        }
        return r;
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
                r = plan_items(&p);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(plan);
        return 0;
}
