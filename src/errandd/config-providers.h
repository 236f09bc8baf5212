/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* agent.providers: what a session's calls to a model's API go to, and with which key. */

#include "errandd/secret-source.h"

#define CONFIG_PROVIDERS_MAX 32U
#define CONFIG_BROKERED_MAX 12U /* what one broker serves: each may bring a CA file, and its setup message holds 16 fds */
#define CONFIG_CAPABILITIES_MAX 256U

typedef enum ProviderKind {
        PROVIDER_ANTHROPIC, /* key in x-api-key unless placement says otherwise */
        PROVIDER_OPENAI,    /* bearer */
        PROVIDER_UNKNOWN,   /* not given: an API that the agent knows by its id */
} ProviderKind;

typedef enum ProviderPlacement {
        PROVIDER_BEARER,
        PROVIDER_X_API_KEY,
        PROVIDER_EITHER, /* neither kind nor placement is given: the stand-in is taken in either header */
} ProviderPlacement;

typedef struct Capability {
        char *method; /* upper case, or "*" */
        char *path;   /* begins with '/'; segments "*" and "**" are wildcards */
} Capability;

typedef struct ConfigProvider {
        char *id;              /* [a-z0-9-]{1,32} */
        int kind;              /* ProviderKind */
        char *base_url;        /* without a trailing slash; NULL: the agent's model store knows it */
        char *ca_file;         /* collapsed absolute path */
        SecretSource credential;
        char *credential_name; /* of the variable: given, or ID_API_KEY in upper case */
        int placement;         /* ProviderPlacement, derived from kind when not given */
        char *header;          /* another header's name for the key */
        Capability *capabilities;
        size_t n_capabilities;
        bool every_call;       /* capabilities is "*" */
        bool strict_capabilities;
        bool broker;           /* false: reached as any other host, with the real key */
        char *extension;       /* registered by it, so not brokered either */
        char **tools;          /* "image", "speech", "music": all send the key as a bearer token */
        char **models;
} ConfigProvider;

void config_provider_done(ConfigProvider *p);

bool config_provider_brokered(const ConfigProvider *p);
