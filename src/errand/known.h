/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a listener knows of sessions and grants: enough to tell a change from a repetition, and to name what has gone. */

#include "shared/session-id.h"

typedef struct Known {
        struct KnownSession *sessions;
        struct KnownGrant *grants;
        size_t n_sessions, n_grants;
} Known;

void known_done(Known *k);

typedef enum KnownChange {
        KNOWN_SAME,
        KNOWN_CHANGED,
        KNOWN_NEW,
} KnownChange;

/* Unmarks it, too. What there is no memory for is new each time. */
KnownChange known_set_state(Known *k, const char *id, const char *state);
/* 1: it is new; 0: it was known. */
int known_add_grant(Known *k, const char *id, uint32_t number, const char *host);

/* Whether it was known; its grants go with it. */
bool known_remove(Known *k, const char *id);
void known_remove_grant(Known *k, const char *id, uint32_t number);

/* NULL: not known. */
const char *known_host(const Known *k, const char *id, uint32_t number);

/* starting, running, stopping. */
unsigned known_count_live(const Known *k);

/* Marks every session; those that are marked still when all that there is was set are forgotten, each told to `gone`. */
void known_mark(Known *k);
void known_forget_marked(Known *k, void (*gone)(const char *id, void *userdata), void *userdata);
