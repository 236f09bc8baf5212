/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The requests of the shim's socket that are of a conversation: prompt, turn, interrupt, answer. */

#include "shared/message.h"
#include "shim/conversation.h"

/* Each: 0; or -EINVAL with *ret_problem, a constant sentence; or another negative errno. */
typedef int (*ControlConversation)(Conversation *c, Message *m, const char **ret_problem);

int control_prompt(Conversation *c, Message *m, const char **ret_problem);
int control_turn(Conversation *c, Message *m, const char **ret_problem);
int control_interrupt(Conversation *c, Message *m, const char **ret_problem);
int control_answer(Conversation *c, Message *m, const char **ret_problem);
