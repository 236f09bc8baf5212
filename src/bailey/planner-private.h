/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Between planner.c, which finds out what has to stand inside, and planner-steps.c, which makes steps of that. */

#include <sys/types.h>

#include "bailey/planner.h"

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

/* Sorts the items, and adds the steps that make them stand to the plan. */
int planner_add_steps(Planner *p);
