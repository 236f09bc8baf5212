/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One layer of a policy: what one file says, or what is built in, before anything is looked up or combined. */

#include "bailey/findings.h"
#include "basic/macro.h"

typedef enum PathRights {
        RIGHT_READ = 1 << 0,
        RIGHT_WRITE = 1 << 1,   /* comes with RIGHT_READ */
        RIGHT_EXECUTE = 1 << 2, /* comes with RIGHT_READ */
} PathRights;

typedef struct LayerRule {
        char *path; /* absolute, collapsed, as named: not resolved */
        PathRights rights;
        bool deny;
        bool read_only; /* takes writing away from whatever covers the path */
        bool device;    /* a device, or a directory whose devices are meant */
        unsigned grant_line, write_line, deny_line, read_only_line; /* 0: not said */
} LayerRule;

typedef enum VariableRule {
        VARIABLE_PASS,
        VARIABLE_SET,
        VARIABLE_DENY,
} VariableRule;

typedef struct LayerVariable {
        char *name, *value; /* value of VARIABLE_SET */
        VariableRule rule;
        unsigned line;
} LayerVariable;

/* Bytes, counts and percents of one CPU; LIMIT_NONE where nothing was said. */
#define LIMIT_NONE UINT64_MAX
typedef struct Limits {
        uint64_t memory_bytes, pids_max, cpu_percent, tmp_bytes, shm_bytes;
        uint64_t file_bytes, core_bytes, files_max; /* of each process: see setrlimit(2) */
} Limits;
#define LIMITS_NONE ((Limits){LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE})

typedef struct Layer {
        char *name; /* for people: a file's path, or "target", "untrusted", "profile NAME" */
        bool from_file; /* somebody wrote it down: a file, or a profile */
        bool bundled;   /* a profile that is compiled in: what it names and this host lacks is left out */
        bool is_profile;
        bool is_target;

        LayerRule *rules;
        size_t n_rules;
        bool reset_filesystem, reset_network, reset_environment, reset_resources;

        bool egress_said, egress_allow;
        unsigned egress_line;
        char **egress_hosts;
        uint16_t *bind_ports;
        size_t n_bind_ports;

        LayerVariable *variables;
        size_t n_variables;

        Limits limits;
        char *home; /* absolute, collapsed */
        unsigned home_line;

        char *description; /* of a profile */
        char **applies_to; /* the programs that it is for without being named: absolute, collapsed */
} Layer;

Layer *layer_new(const char *name);
Layer *layer_free(Layer *l);
DEFINE_CLEANUP(Layer *, layer_free);

/* The layers of a run, lowest first. */
typedef struct LayerList {
        Layer **items;
        size_t n;
} LayerList;

void layer_list_done(LayerList *list);
/* Takes l always; -ENOMEM also for NULL. */
int layer_list_add(LayerList *list, Layer *l);

/* The rule of that path, made when there is none. NULL when out of memory. The pointer is good until the next call. */
LayerRule *layer_rule(Layer *l, const char *path);
int layer_grant(Layer *l, const char *path, PathRights rights);

/* [A-Za-z_][A-Za-z0-9_]* */
bool variable_name_valid(const char *s, size_t size);
