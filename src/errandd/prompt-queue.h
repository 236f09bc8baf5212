/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The numbers of a session's prompts without a turn, in their order, as its shim tells of them: it has the queue. Some are errandd's own, sent by it since it
 * runs; of the others there is the shim's word alone. They are of before errandd was there, or made up. */

#include "errandd/numbers.h"
#include "shared/conversation-limits.h"

typedef struct PromptQueue {
        uint64_t numbers[PROMPTS_MAX];
        size_t n;
        uint64_t claims[PROMPTS_MAX]; /* what only the shim tells of, whether it is in the queue still or not */
        size_t n_claims;
} PromptQueue;

bool prompt_queue_has(const PromptQueue *q, uint64_t number);
/* True: it was there, and is no more. */
bool prompt_queue_take(PromptQueue *q, uint64_t number);
/* One of errandd's own; nothing is done where it is there already, or there is no room. */
void prompt_queue_add(PromptQueue *q, uint64_t number);
/* Now it is as the shim says. sent(): errandd has sent that one, and was not told yet that it is there. */
void prompt_queue_replace(PromptQueue *q, const uint64_t numbers[], size_t n, bool (*sent)(uint64_t number, const void *userdata), const void *userdata);
/* Of errandd's own, but for so many in front. */
size_t prompt_queue_count_own(const PromptQueue *q, size_t skip);
