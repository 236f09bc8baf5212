/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The resolved policy, as data: every layer combined, every path looked up. It is what `bailey show` prints and what plan.c
 * turns into steps. Resolving reads the host's directory entries and nothing else; it changes nothing.
 *
 * How paths combine: the most specific path wins, whatever the order; of one path the highest layer wins; keys of one layer add
 * up. `read_only` takes writing away from what holds for its path. Paths are compared by where they really lead. */

#include "bailey/account.h"
#include "bailey/layer.h"
#include "bailey/resolve.h"

typedef struct PolicyRule {
        char *path; /* as named */
        ResolvedPath resolved;
        PathRights rights; /* what the rule grants; 0 for a deny or a bare read_only */
        bool deny, read_only;
        bool is_target;
        size_t layer; /* index into the layers it came from: higher wins */
        unsigned line;
} PolicyRule;

/* What holds for a real path and all below it, down to the next deeper entry. */
typedef struct PolicyEntry {
        const PolicyRule *rule; /* the one that won; borrowed from rules */
        PathRights rights;      /* 0: denied */
        bool island;            /* less than what holds around it, by read_only alone */
} PolicyEntry;

typedef struct PolicyVariable {
        char *name, *value, *layer; /* layer: "base" or a layer's name */
} PolicyVariable;

/* The layer of that index is the floor; 0 is the target's. */
#define FLOOR_LAYER 1U

typedef struct Policy {
        const char *base;   /* "untrusted" */
        char *profile;      /* over it, NULL: none */
        char **files;       /* configuration layers, lowest first */
        char **skipped;     /* files that were found and not accepted */
        char **layer_names; /* of all layers, by the index that rules name: "target", "untrusted", "profile NAME", files */

        PolicyRule *rules; /* sorted by named path, one a path */
        size_t n_rules;
        PolicyEntry *entries; /* sorted by real path, one a path */
        size_t n_entries;

        bool egress_allow;
        size_t egress_layer; /* that said so; 0: none did, and nothing is allowed */
        char **egress_hosts;
        uint16_t *bind_ports;
        size_t n_bind_ports;

        Limits limits;
        Limits limit_layers; /* the layers they come from, LIMIT_NONE where there is no limit */

        PolicyVariable *variables; /* sorted, bailey's own last */
        size_t n_variables;

        char *target;             /* real path of the file to execute */
        char *working_directory;  /* real */
        char *home;               /* host path of the directory that becomes the home inside, as named */
        char *home_real;          /* the same without links */
        char *home_name;          /* of a derived one, below the state directory; NULL: chosen by --home or a file */
        char *state_directory;    /* $XDG_DATA_HOME/bailey, real: other programs' homes */
        char *config_directory;   /* $XDG_CONFIG_HOME/bailey, real */
        Account account;
} Policy;

Policy *policy_free(Policy *p);
DEFINE_CLEANUP(Policy *, policy_free);

/* The entry that holds for a real path; NULL when nothing covers it. */
const PolicyEntry *policy_entry_for(const Policy *p, const char *real);
PathRights policy_rights_at(const Policy *p, const char *real);

const char *policy_variable(const Policy *p, const char *name); /* NULL: not set */

/* "rwx"-style text of three characters, "---" for none. */
void path_rights_to_string(PathRights rights, char ret[4]);

/* True when a run can give what the policy asks of the network; else *ret_reason is a sentence for people. */
bool policy_network_supported(const Policy *p, const char **ret_reason);
