/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The requests of the shim's socket that are of a conversation: prompt, turn, interrupt, answer. */

#include "shared/message.h"
#include "shim/conversation.h"

/* The message's type is one of these. 0; or -EINVAL with *ret_problem, a constant sentence; or another negative errno. */
int control_conversation(Conversation *c, Message *m, const char **ret_problem);
