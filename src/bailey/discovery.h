/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The policy files that nobody named: $XDG_CONFIG_HOME/bailey/config.toml, then each bailey.toml on the way up from the target
 * and from the working directory. One that was found this way may have come with the program, so it applies only if the
 * person accepted that very text at that very place (trust-store.h); else it is skipped, and that is told. */

#include <sys/stat.h>

#include "bailey/account.h"
#include "bailey/policy-path.h"
#include "bailey/layer.h"

#define DISCOVERY_NAME "bailey.toml"

typedef struct DiscoveryRequest {
        const Account *account;
        const char *config_directory;  /* as named */
        const char *target;            /* absolute, as named; NULL: a shell */
        const char *working_directory; /* real; NULL: it has no name */
        const struct stat *config;     /* of --config's file, which counts once; NULL */
        const PolicyPlaces *places;
} DiscoveryRequest;

/* Adds the layers, lowest first, and says in *ret_skipped (a list to free) which files were left out, each also a warning. What
 * is wrong in a file that counts is an error in *findings. -ENOMEM. */
int discovery_load(const DiscoveryRequest *request, Findings *findings, LayerList *layers, char ***ret_skipped);
