/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the addresses of a trace come to in a policy: TCP ports, as nothing else can be told apart there. */

#include "bailey/access.h"

typedef struct NetworkUse {
        uint16_t *connect, *bind; /* host byte order, each once, ascending */
        size_t n_connect, n_bind;
        char **addresses;         /* of both, for people; escaped */
        bool beyond;              /* some of it needs more than the loopback that every sandbox has */
} NetworkUse;

void network_use_done(NetworkUse *u);

/* Takes one address. *ret_reason is why it cannot be granted, or NULL: a string constant. 0 or -ENOMEM. */
int network_use_add(NetworkUse *u, const Trace *t, const Access *a, const char **ret_reason);

/* The [network] table, if there is anything to grant. */
void network_use_print(const NetworkUse *u, FILE *f);
