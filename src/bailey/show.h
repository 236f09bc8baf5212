/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints a resolved policy for people, in a form that is documented (bailey(1)) and stays, and for programs. */

#include "bailey/gap.h"
#include "bailey/network.h"

/* What of the network is asked for, and what the host has of it. */
typedef struct ShownNetwork {
        const Network *network;
        int landlock_abi;
        bool namespaces, pasta, proxy_asked;
        GapSet gaps; /* of --no-isolate */
} ShownNetwork;

int show_policy(const Policy *p, const ShownNetwork *network, FILE *f);
int show_policy_json(const Policy *p, const ShownNetwork *network, FILE *f); /* one line */
