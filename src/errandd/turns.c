/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "errandd/turns.h"

static void line_up(TurnSeat *s) {
        Turns *t = s->turns;

        s->lined = true;
        s->next = NULL;
        if (t->last)
                t->last->next = s;
        else
                t->first = s;
        t->last = s;
}

static void step_out(TurnSeat *s) {
        Turns *t = s->turns;
        TurnSeat *before = NULL;

        for (TurnSeat *i = t->first; i && i != s; i = i->next)
                before = i;
        if (before)
                before->next = s->next;
        else
                t->first = s->next;
        if (t->last == s)
                t->last = before;
        s->next = NULL;
        s->lined = false;
}

static uint64_t half(uint64_t all) {
        return MAX(all / 2, UINT64_C(1));
}

static uint64_t running_of(const Turns *t, uid_t uid) {
        uint64_t n = 0;

        for (const TurnSeat *i = t->seats; i; i = i->next_seat)
                n += i->uid == uid && i->running;
        return n;
}

static uint64_t waiting_of(const Turns *t, uid_t uid) {
        uint64_t n = 0;

        for (const TurnSeat *i = t->seats; i; i = i->next_seat)
                n += i->uid == uid ? i->waiting : 0;
        return n;
}

static bool may_run(const TurnSeat *s) {
        const Turns *t = s->turns;
        return t->running < t->running_max && (!s->shares || running_of(t, s->uid) < half(t->running_max));
}

/* The first in the line whose account may have one more. */
static TurnSeat *next_of(const Turns *t) {
        TurnSeat *s = t->running < t->running_max ? t->first : NULL;

        while (s && !may_run(s))
                s = s->next;
        return s;
}

static void call(Turns *t) {
        TurnSeat *s;

        if (t->calling) /* from within begin(): the loop below goes on */
                return;
        t->calling = true;
        while ((s = next_of(t))) {
                step_out(s);
                s->running = true;
                t->running++;
                s->begin(s->userdata);
        }
        t->calling = false;
}

void turns_limit(Turns *t, uint64_t running_max, uint64_t waiting_max) {
        t->running_max = running_max;
        t->waiting_max = waiting_max;
        call(t);
}

void turn_seat_open(TurnSeat *s, Turns *t, uid_t uid, bool shares, bool running, void (*begin)(void *userdata), void *userdata) {
        *s = (TurnSeat){.turns = t, .uid = uid, .shares = shares, .running = running, .begin = begin, .userdata = userdata, .next_seat = t->seats};
        t->seats = s;
        t->running += running;
}

void turn_seat_close(TurnSeat *s) {
        Turns *t = s->turns;

        if (!t)
                return;
        if (s->lined)
                step_out(s);
        t->waiting -= s->waiting;
        t->running -= s->running;
        for (TurnSeat **i = &t->seats; *i; i = &(*i)->next_seat)
                if (*i == s) {
                        *i = s->next_seat;
                        break;
                }
        *s = (TurnSeat){};
        call(t);
}

int turn_seat_check(const TurnSeat *s) {
        const Turns *t = s->turns;

        /* It would begin at once, so that it works with a queue of no length too. */
        if (s->ready && !s->running && !s->lined && s->waiting == 0 && may_run(s) && t->running + t->waiting < t->running_max)
                return 0;
        if (t->waiting >= t->waiting_max)
                return -ENOSPC;
        return s->shares && waiting_of(t, s->uid) >= half(t->waiting_max) ? -EDQUOT : 0;
}

void turn_seat_set(TurnSeat *s, bool ready, bool running, bool wants, uint64_t waiting) {
        Turns *t = s->turns;

        running = running && s->running;
        wants = wants && ready && !running;
        t->waiting = t->waiting - s->waiting + waiting;
        t->running = t->running - s->running + running;
        s->ready = ready;
        s->running = running;
        s->waiting = waiting;
        if (wants && !s->lined)
                line_up(s);
        else if (!wants && s->lined)
                step_out(s);
        call(t);
}
