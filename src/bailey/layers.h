/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Combines the layers of a run, lowest first: the target's implicit grant; the floor and a profile; the person's config.toml;
 * each accepted bailey.toml; --config. */

#include "bailey/policy.h"

typedef struct PolicyRequest {
        const Account *account; /* copied */
        const char *target;     /* absolute, collapsed, as named: found already (target.h) */
        const char *config;     /* --config FILE or NULL */
        const char *profile;    /* --profile NAME or NULL */
        const char *home;       /* --home DIR or NULL */
        bool only_config;       /* no file but that of --config */
        bool shell;             /* the target is a shell for the working directory: policy and home are the directory's */
        bool brokered;
        char *const *extra_environment; /* KEY=VALUE, over every layer; NULL: none */
} PolicyRequest;

/* Reads, combines, looks up, checks. 0 with *ret set unless *findings failed; only -ENOMEM and the like otherwise. Nothing on the
 * host is changed. */
int policy_resolve(const PolicyRequest *request, Findings *findings, Policy **ret);

/* Only the filesystem tables of layers[] (lowest first) into p->rules and p->entries. */
int layers_combine_paths(Policy *p, Layer *const *layers, size_t n_layers, Findings *findings);
