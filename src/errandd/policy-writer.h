/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* policy.toml of a session, made from the configuration at each start. There is no way to supply a whole one: what the report says is what this
 * writes. It begins by clearing the backend's own profile, places the floor anew, and only adds to it. */

#include "errandd/config.h"

/* The system's configuration and keys, which no session sees, whatever its mode. */
#define POLICY_OWN_CONFIGURATION "/etc/errand"

typedef struct PolicyInput {
        const char *session;
        const char *project;     /* real path; NULL: none */
        const char *connect;     /* errand-connect, wherever it is; NULL: not found */
        bool open;               /* egress to sandbox.egressPorts, by any host */
        char *const *hidden;     /* real paths of the configuration and of keys' files; NULL: none */
        const ConfigSandbox *sandbox;
} PolicyInput;

/* Whether every session may execute a path, as it may what the system has. */
bool policy_floor_executes(const char *path);

/* *ret is to free. -EBADMSG with *ret_problem, a sentence (to free): a path that is not UTF-8 cannot be written in TOML. */
int policy_format(const PolicyInput *in, char **ret, char **ret_problem);
