/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A message bus with a polkit, and two sessions, each with a grant and a receipt: a1 is the client's, b2 another account's, as is project "theirs". */

#include "errandd/authorizer-polkit.h"
#include "fake-polkit.h"

#define POLKIT_WORLD_STRANGER 3 /* owner of b2 */

typedef struct PolkitWorld {
        MessageBus *bus;
        FakePolkit polkit;
        Authorizer *authorizer;
        sd_bus *client;
        Session *a1, *b2;
        void (*foresee)(Authorizer *a, const AuthorizeRequest *request); /* the authorizer's, which has none, so that each question is a call's own */
} PolkitWorld;

void polkit_world_begin(PolkitWorld *w, char *const *operators);
void polkit_world_end(PolkitWorld *w);
