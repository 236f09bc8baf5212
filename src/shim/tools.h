/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The tool calls of an agent that were seen last, for the updates of one which do not repeat what it is. */

#include "shim/acp.h"
#include "shim/rendering.h"
#include "shim/updates.h"

typedef struct Tool {
        char *id, *title, *sort, *status; /* clean; all of one that is known, none of a free place */
} Tool;

typedef struct Tools {
        Tool calls[TOOL_CALLS_MAX];
        size_t next; /* the place of the oldest */
} Tools;

void tools_done(Tools *t);

/* Remembers what an update says of a tool call, and tells it. */
int tools_update(Tools *t, const SecretList *secrets, const AcpUpdate *u, const Updates *updates, Rendering *rendering);
