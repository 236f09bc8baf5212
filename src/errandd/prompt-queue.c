/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "errandd/prompt-queue.h"

bool prompt_queue_has(const PromptQueue *q, uint64_t number) {
        return numbers_has(q->numbers, q->n, number);
}

bool prompt_queue_take(PromptQueue *q, uint64_t number) {
        return numbers_take(q->numbers, &q->n, number);
}

void prompt_queue_add(PromptQueue *q, uint64_t number) {
        (void) numbers_take(q->claims, &q->n_claims, number); /* a shim may have told of it before it was sent */
        if (q->n < PROMPTS_MAX && !prompt_queue_has(q, number))
                q->numbers[q->n++] = number;
}

void prompt_queue_replace(PromptQueue *q, const uint64_t numbers[], size_t n, bool (*sent)(uint64_t number, const void *userdata), const void *userdata) {
        PromptQueue now = {.n = MIN(n, (size_t) PROMPTS_MAX)};

        for (size_t i = 0; i < now.n; i++) {
                uint64_t number = numbers[i];
                bool own = prompt_queue_has(q, number) ? !numbers_has(q->claims, q->n_claims, number) : sent(number, userdata);

                now.numbers[i] = number;
                if (!own)
                        now.claims[now.n_claims++] = number;
        }
        *q = now;
}

size_t prompt_queue_count_own(const PromptQueue *q, size_t skip) {
        size_t n = 0;

        for (size_t i = skip; i < q->n; i++)
                n += !numbers_has(q->claims, q->n_claims, q->numbers[i]);
        return n;
}
