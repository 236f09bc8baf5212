/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Paths with the rights that a policy is to grant there. In a policy the most specific path wins, so that one below another has to
 * repeat what the other grants. */

#include "bailey/layer.h"

typedef struct Grant {
        char *path; /* absolute, collapsed */
        PathRights rights;
        bool directory;
} Grant;

typedef struct GrantSet {
        Grant *items;
        size_t n;
} GrantSet;

void grant_set_done(GrantSet *s);
int grant_set_add(GrantSet *s, const char *path, PathRights rights, bool directory);

/* Says whether a directory may be granted as a whole in place of some paths in it. */
typedef bool (*GrantWhole)(void *context, const char *directory);

/* Sorts; puts directories in place of their many children, where `whole` lets; gives each path what those above it have, and takes
 * out what then says nothing of its own. */
int grant_set_simplify(GrantSet *s, GrantWhole whole, void *context);
