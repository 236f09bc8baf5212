/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* errand.json, read whole and checked before anything acts on it: a typed struct with its defaults, or every problem at once. The keys, their
 * types, ranges and defaults are one table (config-keys.c), from which data/errand.schema.json is made too. */

#include "basic/clock.h"
#include "errandd/config-providers.h"
#include "errandd/secret-source.h"

#define CONFIG_SIZE_MAX (1024U * 1024U) /* a configuration is written by hand */
#define CONFIG_DEPTH_MAX 32U
#define CONFIG_CPUS_SCALE 1000U /* cpus are kept in thousandths */

typedef enum ConfigMode {
        CONFIG_SYSTEM,   /* projectRoot and stateDir have defaults */
        CONFIG_USER,     /* they are NULL when not given: the program knows the places of its account */
        CONFIG_EMBEDDED, /* the same, and systemdCredential is refused: there is no unit */
} ConfigMode;

typedef enum SandboxBackend {
        BACKEND_BAILEY,
        BACKEND_PODMAN,
        BACKEND_INCUS,
        _BACKEND_MAX,
        _BACKEND_INVALID = -EINVAL,
} SandboxBackend;

typedef enum NetworkMode {
        NETWORK_RESTRICTED,
        NETWORK_NONE,
} NetworkMode;

typedef enum EgressMode {
        EGRESS_PROXY,
        EGRESS_OPEN,
} EgressMode;

typedef enum ServerNameMode {
        SERVER_NAME_LOG,     /* a tunnel whose TLS server name differs from its host is logged */
        SERVER_NAME_ENFORCE, /* and closed */
} ServerNameMode;

typedef enum AgentProtocol {
        PROTOCOL_NONE, /* its standard streams are the session's */
        PROTOCOL_ACP,  /* the Agent Client Protocol, on its standard input and output */
} AgentProtocol;

typedef struct ConfigEgress {
        bool given;           /* without the block every host is allowed; with it none but those named: allow is ["*"] or what it says */
        int mode;             /* EgressMode */
        char **allow;         /* normalized; NULL = no host */
        bool allow_internal;  /* internal addresses written as literals are allowed: all of them when the list below is empty */
        char **internal_list; /* or only these literals */
        int server_name;      /* ServerNameMode */
} ConfigEgress;

typedef struct ConfigSandbox {
        int backend; /* SandboxBackend */
        bool require_full_enforcement;
        int network; /* NetworkMode */
        ConfigEgress egress;
        uint16_t *ports; /* egressPorts; never NULL, n_ports may be 0 */
        size_t n_ports;
        char *image; /* podman's */
        struct {
                char *project, *image, *golden;
                uint64_t root_size;
                uint64_t guest_uid;
        } incus;
        uint64_t memory, file_max, tmp_size, shm_size, disk; /* bytes */
        uint64_t cpus; /* thousandths */
        uint64_t pids;
        usec_t disk_check, grace_period;
        bool hide_host_address;
        struct {
                char **read, **write, **execute; /* collapsed absolute paths */
        } policy_extra;
        char **env; /* KEY=VALUE, in the order of the file */
        char **path_extra;
} ConfigSandbox;

typedef struct ConfigAgent {
        bool given;
        char **command;
        int protocol; /* AgentProtocol, of that command */
        char *provider;
        char *model;
        ConfigProvider *providers;
        size_t n_providers;
} ConfigAgent;

typedef struct ConfigGithub {
        SecretSource token;
        char *user_name, *user_email;
        struct {
                bool given;
                uint64_t id, installation;
                SecretSource private_key;
        } app;
} ConfigGithub;

typedef struct Config {
        unsigned n_ref;
        char *project_root, *state_dir; /* collapsed absolute paths; see ConfigMode */
        char **operators;
        char **operator_uids; /* in digits, of those that there are: as config_load() finds them */
        ConfigAgent agent;
        ConfigGithub github;
        ConfigSandbox sandbox;
        struct {
                uint64_t live_sessions, brokers_ahead, concurrent_turns, queue_length;
                usec_t queue_wait;
        } limits;
        struct {
                usec_t idle, startup, question, abort; /* idle 0 = never */
        } timeouts;
        ConfigBudgets budgets; /* of one session, over all its providers */
        char **warnings; /* sentences of the same form as problems: what will not work, without being a reason to refuse */
        char **given;    /* the keys that the file has, by their paths; not those within lists and providers */
} Config;

Config *config_ref(Config *c);
Config *config_free(Config *c); /* the last of those who have it */
DEFINE_CLEANUP(Config *, config_free);

/* The defaults, as of an empty file. */
int config_new(ConfigMode mode, Config **ret);

/* name goes before every sentence ("FILE: sandbox.egress.mode: …"). -EBADMSG with *ret_problems, a list of sentences (to strv_free), each
 * whole, none with a secret in it. */
int config_parse(const char *name, const char *text, size_t size, ConfigMode mode, Config **ret, char ***ret_problems);

/* The same from an open file, which the caller keeps; -EBADMSG also when it cannot be read or is too large. Warns of a file that holds
 * secrets and can be read by every account. */
int config_read_fd(const char *name, int fd, ConfigMode mode, Config **ret, char ***ret_problems);

/* NULL when there is none of that id. */
/* Every secret that is named, by number from 0; NULL: there are no more. One that is not given is of the kind SECRET_SOURCE_NONE. */
const SecretSource *config_secret_source(const Config *c, size_t i);
const ConfigProvider *config_find_provider(const Config *c, const char *id);

/* Keys that the file has and that do nothing with the rest of it, in that mode: a sentence each, appended to *list. */
int config_add_inert(const Config *c, ConfigMode mode, char ***list);

const char *backend_to_string(SandboxBackend b);
