/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A conversation with an agent over its standard input and output: its turns, its questions, its end. Whatever the agent does, memory is bounded, nothing
 * waits for it, each prompt that was taken ends once, and no text of its own leaves before secrets were taken out of it. */

#include <systemd/sd-event.h>

#include "basic/clock.h"
#include "shim/transcript.h"
#include "shim/updates.h"

typedef struct Conversation Conversation;

typedef struct ConversationOptions {
        usec_t startup_usec;  /* for the answers to initialize and session/new together */
        usec_t question_usec; /* then a question is answered by nobody */
        usec_t abort_usec;    /* for an interrupted turn */
        const char *directory; /* where the agent works, as it is called inside; copied */
} ConversationOptions;

typedef struct ConversationLinks {
        Updates updates;
        /* It has failed for that reason, a clean sentence: its session is to be stopped. Called once. */
        void (*failed)(const char *text, void *userdata);
        /* The agent's output was read to its end. Called once. */
        void (*ended)(void *userdata);
        void *userdata;
} ConversationLinks;

/* event, secrets and transcript are borrowed. */
int conversation_new(sd_event *event, const SecretList *secrets, Transcript *transcript, const ConversationOptions *options,
                     const ConversationLinks *links, Conversation **ret);
Conversation *conversation_free(Conversation *c);
DEFINE_CLEANUP(Conversation *, conversation_free);

/* Takes the agent's input (to write) and output (to read), which do not block. What it says is read from now on. */
int conversation_open(Conversation *c, int input, int output);
/* The agent runs: the handshake begins, and the time for it. */
void conversation_begin(Conversation *c);
/* The session is over: what has not ended yet ends here. No update comes later. */
void conversation_finish(Conversation *c);

/* Whether the agent's output may have more. */
bool conversation_is_open(const Conversation *c);
/* What the agent owes before it is ready: "initialize", "session/new"; NULL: nothing. */
const char *conversation_awaits(const Conversation *c);

/* errandd's requests. Each gives 0, or -EINVAL with *ret_problem, a constant sentence; or -ENOMEM and the like. */
int conversation_prompt(Conversation *c, uint64_t number, usec_t wait_usec, const char *text, const char **ret_problem);
int conversation_turn(Conversation *c, const char **ret_problem);
int conversation_interrupt(Conversation *c, const char **ret_problem);
int conversation_answer(Conversation *c, uint64_t question, const char *option, const char **ret_problem);

/* "conversation":{"ready":…,"turn":…,"queued":[…],"last":…} */
void conversation_add_state(const Conversation *c, JsonWriter *w);
/* Tells the questions that are open again, for who watches from now on. */
void conversation_tell_questions(const Conversation *c);
