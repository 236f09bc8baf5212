/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>

#include "bailey/planner-private.h"
#include "basic/path.h"
#include "basic/text.h"

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

int planner_add_steps(Planner *p) {
        qsort(p->items, p->n_items, sizeof(Item), compare_items);
        int r = add_place(p, "/", &(Place){.host = false});
        for (size_t i = 0; i < p->n_items && r >= 0; i++) {
                const Item *before = i > 0 ? &p->items[i - 1] : NULL;
                if (!before || before->type != p->items[i].type || !streq(before->path, p->items[i].path))
                        r = plan_item(p, &p->items[i]);
        }
        return r;
}
