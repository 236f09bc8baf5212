/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whose turn it is: sessions whose prompts wait for one stand in a line, and so many turns go on at once as the configuration says. A session has one turn
 * at a time, and stands at the end again for the next. Counts alone: who begins a turn, and what a prompt is, is conversation.h's. */

#include <sys/types.h>

#include "basic/macro.h"

typedef struct TurnSeat TurnSeat;

typedef struct Turns {
        uint64_t running_max, waiting_max; /* limits.maxConcurrentTurns, maxQueueLength */
        uint64_t running, waiting;         /* of all seats */
        TurnSeat *seats;                   /* all of them */
        TurnSeat *first, *last;            /* the line */
        bool calling;                      /* somebody is being let begin */
} Turns;

/* One session's place. It is the session's memory; a zeroed one is nobody's. */
struct TurnSeat {
        Turns *turns;
        TurnSeat *next_seat, *next;
        uid_t uid;      /* whose session it is */
        bool shares;    /* its account has at most half of everything: it is no operator */
        bool ready;     /* a turn could begin */
        bool running, lined;
        uint64_t waiting; /* prompts without a turn that count, those included that are on their way to it */
        /* A turn is the seat's: begin it. Called from within any function below; may call turn_seat_set(). */
        void (*begin)(void *userdata);
        void *userdata;
};

/* What there is counts at once; turns that go on beyond it do so. */
void turns_limit(Turns *t, uint64_t running_max, uint64_t waiting_max);

/* running: an earlier errandd let it begin one, which goes on. */
void turn_seat_open(TurnSeat *s, Turns *t, uid_t uid, bool shares, bool running, void (*begin)(void *userdata), void *userdata);
void turn_seat_close(TurnSeat *s); /* begin is not called any more; a zeroed one is fine */

/* Whether one more prompt may wait, or would not have to. -ENOSPC: as many as may wait do; -EDQUOT: its account's half does. */
int turn_seat_check(const TurnSeat *s);
/* What is known of the session now. running: its turn goes on, which counts if it was let begin; what is no more running has to be let begin again. wants: a prompt
 * is there that could have the next. */
void turn_seat_set(TurnSeat *s, bool ready, bool running, bool wants, uint64_t waiting);
