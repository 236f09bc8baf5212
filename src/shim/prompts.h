/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The prompts of one session that wait for their turn, in their order. */

#include <systemd/sd-event.h>

#include "basic/clock.h"
#include "basic/macro.h"

typedef struct Prompts Prompts;

typedef struct Prompt {
        uint64_t number;
        char *text;
        Prompts *queue;
        struct Prompt *next;
        sd_event_source *deadline;
} Prompt;

Prompt *prompt_free(Prompt *p);
DEFINE_CLEANUP(Prompt *, prompt_free);

struct Prompts {
        sd_event *event; /* borrowed */
        Prompt *first;
        size_t n;
        uint64_t last; /* the highest number that was seen */
        /* One has waited as long as it may; it is the callee's. */
        void (*expired)(Prompt *p, void *userdata);
        void *userdata;
};

void prompts_done(Prompts *q);

/* wait_usec 0: it waits as long as it takes. -EEXIST: the number does not ascend; -ENOBUFS: PROMPTS_MAX wait already. Takes text on success. */
int prompts_add(Prompts *q, uint64_t number, usec_t wait_usec, char *text);
/* The head, the caller's; NULL: none waits. */
Prompt *prompts_take(Prompts *q);
