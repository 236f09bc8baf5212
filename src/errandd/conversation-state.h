/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a session's conversation with its agent is. */

#include "basic/macro.h"
#include "shared/conversation-limits.h"

typedef struct ConversationState {
        bool reached;      /* its shim can be asked */
        bool known;        /* and has said where it is */
        bool ready;        /* the agent has answered */
        bool turn;         /* one goes on */
        uint64_t prompt;   /* of that turn, or the one that it begins with */
        size_t queued;     /* prompts without a turn */
        uint64_t questions[QUESTIONS_MAX];
        size_t n_questions;
} ConversationState;
