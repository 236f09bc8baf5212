/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Between conversation.c, whose turns and ends they are, and conversation-questions.c. */

#include "shim/agent-pipe.h"
#include "shim/conversation.h"
#include "shim/prompts.h"
#include "shim/questions.h"
#include "shim/rendering.h"
#include "shim/rpc.h"
#include "shim/speech.h"
#include "shim/tools.h"

typedef enum Stage {
        STAGE_WAITING, /* the sandbox is being made */
        STAGE_INITIALIZING,
        STAGE_OPENING, /* its session */
        STAGE_READY,
        STAGE_OVER,    /* failed or ended: nothing is sent, nothing is told */
} Stage;

struct Conversation {
        sd_event *event;
        const SecretList *secrets;
        Transcript *transcript;
        usec_t startup_usec, abort_usec;
        char *directory;
        ConversationLinks links;

        Stage stage;
        bool was_ready;
        AgentPipe *pipe;
        uint64_t last_id, awaited; /* of our requests; 0: no answer is awaited */
        char *session;             /* the agent's name for it */
        char *agent, *release;     /* its name and version, clean */
        sd_event_source *startup, *abort, *linger;
        const char *lingering;     /* why it fails, if the agent does not end by itself */
        bool failed, finished;
        unsigned n_bad_lines;

        Prompts prompts;
        Prompt *turn;
        bool interrupted;
        Questions questions;
        Tools tools;
        Speech message, thought;
        Rendering rendering;
};

/* What errandd asked cannot be done, for that reason. */
static inline int conversation_refuse(const char **ret_problem, const char *text) {
        *ret_problem = text;
        return -EINVAL;
}

/* To the agent; w is done with. One that cannot be written to ends the conversation. */
void conversation_dispatch(Conversation *c, JsonWriter *w);

/* conversation-questions.c */
/* The agent asks. */
void conversation_take_question(Conversation *c, const RpcMessage *m);
void conversation_question_expired(Question *q, void *userdata);
/* All that are open are cancelled. */
void conversation_close_questions(Conversation *c);
