/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* agent.providers: what a session's calls to a model's API go to, and with which key. */

#include "errandd/secret-source.h"
#include "shared/capability.h"
#include "shared/placement.h"

#define CONFIG_PROVIDERS_MAX 32U
#define CONFIG_BROKERED_MAX 12U /* what one broker serves: each may bring a CA file, and its setup message holds 16 fds */

typedef enum ProviderKind {
        PROVIDER_ANTHROPIC, /* key in x-api-key unless placement says otherwise */
        PROVIDER_OPENAI,    /* bearer */
        PROVIDER_UNKNOWN,   /* not given: an API that the agent knows by its id */
} ProviderKind;

typedef struct ConfigBudgets {
        uint64_t requests, bytes, tokens; /* 0 = no budget */
} ConfigBudgets;

typedef struct ConfigProvider {
        char *id;              /* [a-z0-9-]{1,32} */
        int kind;              /* ProviderKind */
        char *base_url;        /* without a trailing slash; NULL: the agent's model store knows it */
        char *ca_file;         /* collapsed absolute path */
        SecretSource credential;
        char *credential_name; /* of the variable: given, or ID_API_KEY in upper case */
        int placement;         /* Placement: given, or by kind, or HEADER with the next; EITHER when nothing says it */
        char *header;          /* the name of another header for the key */
        char *user;            /* the name beside the key of PLACEMENT_BASIC; set for it alone */
        Capability *capabilities;
        size_t n_capabilities;
        bool every_call;       /* capabilities is "*" */
        bool strict_capabilities;
        ConfigBudgets budgets;
        bool broker;           /* false: reached as any other host, with the real key */
        char *extension;       /* registered by it, so not brokered either */
        char **tools;          /* "image", "speech", "music": all send the key as a bearer token */
        char **models;
} ConfigProvider;

void config_provider_done(ConfigProvider *p);

bool config_provider_brokered(const ConfigProvider *p);

/* baseUrl, or where a provider of that id is known to answer; NULL when neither says it. */
const char *config_provider_url(const ConfigProvider *p);
