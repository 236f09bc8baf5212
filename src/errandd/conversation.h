/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A session's conversation with its agent, as errandd knows it. The agent's client is the shim, which has the queue of prompts and goes on without errandd;
 * here is what it says of itself, who waits for its answers, and the session's place among those that wait for a turn. A shim is the payload's account's: what
 * it tells of prompts that nobody sent is no news, and neither a turn that it was not given nor a prompt that errandd did not send it takes a place from others. */

#include "errandd/conversation-state.h"
#include "errandd/manager.h"
#include "errandd/shim-client.h"
#include "errandd/turns.h"
#include "errandd/update.h"

typedef struct Conversation Conversation;

typedef struct ConversationHandler {
        void (*update)(const Update *u, void *userdata); /* for who follows the session */
        void (*turn)(bool given, void *userdata);        /* it is given one, or that is over: to be recorded for the next errandd. Changes nothing here */
        void *userdata;
} ConversationHandler;

/* problem is NULL: it worked; else a sentence. prompt: its number, of a prompt that is queued; else 0. Called once, from the event loop, for each call below
 * that returned 0. */
typedef void (*ConversationDone)(uint64_t prompt, const char *problem, void *userdata);

/* Subscribes to the shim, which tells where it is. session (its id, for the log), shim and turns are borrowed; shares: turn_seat_open(). given: an earlier errandd
 * gave it a turn, which is one of those that there may be at once until it says that it has none; one that says nothing within FOUND_TURN_USEC holds up others no longer. */
#define FOUND_TURN_USEC (10 * USEC_PER_SEC)
int conversation_new(sd_event *event, ShimClient *shim, Turns *turns, const char *session, uid_t owner, bool shares, bool given, const ConversationHandler *handler, Conversation **ret);
/* The connection to its shim broke, and goes: before that client does. Nothing is lost by it: what was asked for waits for conversation_attach(), but for answers
 * and interruptions, which are told that it is not known what became of them. c may be NULL. */
void conversation_detach(Conversation *c);
/* By another connection, borrowed as the first one. A negative errno: that is of no use. */
int conversation_attach(Conversation *c, ShimClient *shim);
/* That will be a while: whoever waits for an answer is told. Prompts that the shim has go on. c may be NULL. */
void conversation_give_up(Conversation *c);

/* Before the shim's client goes. With text, a sentence for who waits, it is over: each prompt that was accepted is told to have ended with it. Without, it
 * goes on, and another errandd will hear of it. */
Conversation *conversation_free(Conversation *c, const char *text);

/* done: it is in the shim's queue. wait: how long it may be there. */
int conversation_prompt(Conversation *c, const char *text, usec_t wait, bool operator, ConversationDone done, void *userdata, Fault *f);
int conversation_interrupt(Conversation *c, ConversationDone done, void *userdata, Fault *f);
/* question 0: the one that is open. */
int conversation_answer(Conversation *c, uint64_t question, const char *option, ConversationDone done, void *userdata, Fault *f);

/* Something goes on, or waits. */
bool conversation_busy(const Conversation *c);

void conversation_state(const Conversation *c, ConversationState *ret);
