/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A session's variables beyond those that bailey itself places (HOME, USER, LANG, …). They reach it in a sealed memfd and in no other way. */

#include "errandd/config.h"
#include "errandd/credentials.h"

typedef struct EnvironmentInput {
        const Config *config;
        const Credentials *credentials;
        uint16_t port;           /* of the listener; 0: no broker */
        char *const *env;        /* KEY=VALUE of CreateSession */
        const char *provider;    /* whose kind's usual variable is meant when several have that kind; NULL: the first */
        const char *connect;     /* errand-connect: the session finds it in PATH; NULL: there is none */
        bool interactive;        /* TERM is given a value when nobody else gives one */
} EnvironmentInput;

/* KEY=VALUE, each name once; to environment_free(), which wipes it. A name that errandd sets keeps its value. */
int environment_build(const EnvironmentInput *in, char ***ret);
char **environment_free(char **list);

/* The list as a sealed memfd of KEY=VALUE\0 … */
int environment_seal(char *const *list, int *ret_fd);

/* A sealed memfd of SECRET\0 …: all that the session is given and that must not stand in its transcript. Secrets under 8 bytes are left out: to replace
 * them mangles ordinary text. */
#define SCRUB_SIZE_MIN 8U
int scrub_seal(const Credentials *c, int *ret_fd);
