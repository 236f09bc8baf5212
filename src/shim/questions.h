/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an agent has asked for permission and nobody has answered yet. */

#include <systemd/sd-event.h>

#include "basic/clock.h"
#include "shim/acp.h"
#include "shim/scrub-chain.h"

typedef struct Questions Questions;

typedef struct Choice {
        char *id;   /* by which it is chosen: the agent's, where that is a plain word, else one of ours */
        char *name; /* clean; so is kind */
        char *kind;
        char *theirs; /* as the agent wrote it */
} Choice;

typedef struct Question {
        uint64_t number; /* from 1, of the session */
        char *title;     /* clean */
        Choice choices[QUESTION_OPTIONS_MAX];
        size_t n_choices;
        char request[RPC_ID_MAX + 1]; /* the agent's id of it, as it is written */
        Questions *questions;
        sd_event_source *deadline;
} Question;

Question *question_free(Question *q);
DEFINE_CLEANUP(Question *, question_free);

/* One line for each choice: ID, name and kind with tabs between; to free. */
char *question_options(const Question *q);
const Choice *question_find(const Question *q, const char *id);

struct Questions {
        sd_event *event;           /* borrowed, as are the secrets */
        const SecretList *secrets;
        usec_t patience_usec;
        Question *open[QUESTIONS_MAX];
        size_t n;
        uint64_t last;
        /* It has waited as long as it may; it is the callee's. */
        void (*expired)(Question *q, void *userdata);
        void *userdata;
};

void questions_done(Questions *q);
/* *ret is borrowed. -ENOBUFS: QUESTIONS_MAX are open; -EBADMSG: two of its choices cannot be told apart. */
int questions_add(Questions *q, const AcpQuestion *asked, JsonView request, const Question **ret);
/* That one, or the first for 0, no longer open, the caller's; NULL: there is none. */
Question *questions_take(Questions *q, uint64_t number);
const Question *questions_find(const Questions *q, uint64_t number);
