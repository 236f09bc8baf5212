/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What one start of a session mints, and the keys that its broker is to have: the hand-over's token, the proxy credential, and for each provider
 * the real key with its stand-in. A copy of its own, so that a session keeps what it was started with when the configuration is read again. */

#include "errandd/config.h"
#include "errandd/manager.h"

typedef struct SessionProvider {
        char *id, *credential_name, *base_url, *ca_file;
        int kind, placement; /* ProviderKind, Placement */
        char *header, *user; /* of PLACEMENT_HEADER and PLACEMENT_BASIC */
        Capability *capabilities;
        size_t n_capabilities;
        bool every_call, strict_capabilities;
        ConfigBudgets budgets;
        bool brokered;
        Secret *key;      /* real */
        Secret *stand_in; /* brokered only */
} SessionProvider;

typedef enum SessionNetwork {
        SESSION_NETWORK_NONE,
        SESSION_NETWORK_BROKER, /* the one way out */
        SESSION_NETWORK_OPEN,   /* any host on the allowed ports, no broker */
} SessionNetwork;

typedef struct Credentials {
        Secret *token;      /* 64 hex digits */
        Secret *credential; /* errand-session-… */
        SessionProvider *providers;
        size_t n_providers;
        Secret *github_token; /* NULL: none */
} Credentials;

/* Mints and resolves. A sentence without a secret in *f when a key cannot be read. Without a network there are no providers, which could not
 * be reached; with an open one no stand-ins, which nobody would exchange: the session holds the keys. */
int credentials_new(const Config *c, SessionNetwork network, Credentials **ret, Fault *f);
Credentials *credentials_free(Credentials *c);
DEFINE_CLEANUP(Credentials *, credentials_free);

/* The sealed memfd that a broker's setup carries: {"credential":…,"providers":{ID:{"key":…,"standIn":…}}}. */
int credentials_format_keys(const Credentials *c, int *ret_fd);
