/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A polkitd that answers as it is told to, and notes what it was asked. */

#include "message-bus.h"

typedef enum FakeAnswer {
        POLKIT_NO,
        POLKIT_YES,
        POLKIT_CHALLENGE, /* somebody would have to be asked, and nobody may be */
        POLKIT_HANG,      /* until fake_polkit_answer() */
        POLKIT_ERROR,
        POLKIT_NONSENSE, /* an answer of another form */
        _POLKIT_ANSWER_MAX,
} FakeAnswer;

typedef struct FakePolkit {
        sd_bus *bus;
        FakeAnswer answer;
        unsigned asked, cancelled;
        char kind[64], name[64], action[64], details[512], cancellation[64], last_cancelled[64]; /* of the last question; details as k=v; */
        uint32_t flags;
        sd_bus_message *held[64];
        size_t n_held;
} FakePolkit;

void fake_polkit_begin(FakePolkit *p, MessageBus *b);
void fake_polkit_end(FakePolkit *p); /* it goes away, and leaves what it was asked unanswered */
void fake_polkit_change(FakePolkit *p); /* tells that it may answer otherwise from now on */
void fake_polkit_answer(FakePolkit *p, bool yes); /* to all that it holds */
