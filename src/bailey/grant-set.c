/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/grant-set.h"
#include "basic/path.h"
#include "basic/text.h"

#define SIBLINGS_MANY 4U /* in one directory: as many are the directory's, not each a decision */

void grant_set_done(GrantSet *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->items[i].path);
        free(s->items);
        *s = (GrantSet) {};
}

int grant_set_add(GrantSet *s, const char *path, PathRights rights, bool directory) {
        Grant *grown = reallocarray(s->items, s->n + 1, sizeof(Grant));

        if (!grown)
                return -ENOMEM;
        s->items = grown;
        grown[s->n] = (Grant) {.path = strdup(path), .rights = rights, .directory = directory};
        if (!grown[s->n].path)
                return -ENOMEM;
        s->n++;
        return 0;
}

static int compare(const void *a, const void *b) {
        return strcmp(((const Grant *) a)->path, ((const Grant *) b)->path);
}

static void take_out(GrantSet *s, size_t at) {
        free(s->items[at].path);
        memmove(s->items + at, s->items + at + 1, (--s->n - at) * sizeof(Grant));
}

/* Sorted, each path once. */
static void unite(GrantSet *s) {
        size_t n = 0;

        if (s->n > 0)
                qsort(s->items, s->n, sizeof(Grant), compare);
        for (size_t i = 0; i < s->n; i++) {
                Grant *g = &s->items[i];
                if (n > 0 && streq(s->items[n - 1].path, g->path)) {
                        s->items[n - 1].rights |= g->rights;
                        s->items[n - 1].directory |= g->directory;
                        free(g->path);
                } else
                        s->items[n++] = *g;
        }
        s->n = n;
}

/* What is above says already what is below, or the lower one repeats it. */
static void inherit(GrantSet *s) {
        for (size_t i = 0; i < s->n; i++)
                for (size_t k = i + 1; k < s->n;) {
                        Grant *above = &s->items[i], *below = &s->items[k];
                        if (!path_beneath(below->path, above->path)) {
                                k++;
                                continue;
                        }
                        below->rights |= above->rights;
                        if (below->rights == above->rights)
                                take_out(s, k);
                        else
                                k++;
                }
}

/* 1 when a directory took its children's place. */
static int collapse(GrantSet *s, GrantWhole whole, void *context) {
        for (size_t i = 0; i < s->n; i++) {
                _cleanup_free_ char *parent = path_parent(s->items[i].path);
                PathRights rights = 0;
                unsigned children = 0;

                if (!parent)
                        return -ENOMEM;
                for (size_t k = 0; k < s->n; k++) {
                        const char *slash = strrchr(s->items[k].path, '/');
                        if (path_beneath(s->items[k].path, parent) && slash == s->items[k].path + strlen(parent)) {
                                children++;
                                rights |= s->items[k].rights;
                        }
                }
                if (children < SIBLINGS_MANY || !whole(context, parent))
                        continue;
                for (size_t k = s->n; k-- > 0;)
                        if (path_beneath(s->items[k].path, parent)) {
                                rights |= s->items[k].rights;
                                take_out(s, k);
                        }
                int r = grant_set_add(s, parent, rights, true);
                if (r < 0)
                        return r;
                unite(s);
                return 1;
        }
        return 0;
}

int grant_set_simplify(GrantSet *s, GrantWhole whole, void *context) {
        int r;

        unite(s);
        do {
                inherit(s);
                r = collapse(s, whole, context);
        } while (r > 0);
        return r;
}
