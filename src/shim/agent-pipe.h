/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An agent's standard input and output: lines out of one, lines into the other. It never waits for the agent: what an agent does not read
 * is kept, up to AGENT_QUEUE_MAX. */

#include <systemd/sd-event.h>

#include "shim/rpc.h"

typedef struct AgentPipe AgentPipe;

/* Called once, when the agent has closed its output; nothing is read or sent afterwards. May free neither. */
typedef void (*AgentEnd)(void *userdata);

/* Takes both descriptors, which do not block. */
int agent_pipe_new(sd_event *event, int input, int output, RpcLineHandler line, AgentEnd end, void *userdata, AgentPipe **ret);
AgentPipe *agent_pipe_free(AgentPipe *p);
DEFINE_CLEANUP(AgentPipe *, agent_pipe_free);

/* Finishes w and sends it. -ENOBUFS: the agent reads too little; -EPIPE: it reads no more. */
int agent_pipe_send(AgentPipe *p, JsonWriter *w);

/* Whether there may be more to read. */
bool agent_pipe_open(const AgentPipe *p);
