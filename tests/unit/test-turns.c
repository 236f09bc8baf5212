/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "errandd/turns.h"
#include "test.h"

#define ALICE 1000U
#define BOB 1001U

typedef struct Player {
        TurnSeat seat;
        unsigned turns;
        bool fails;
} Player;

static Turns turns;
static Player players[8];
static Player *order[64];
static size_t n_order;

static void on_begin(void *userdata) {
        Player *p = userdata;

        p->turns++;
        order[n_order++ % 64] = p;
        if (p->fails)
                turn_seat_set(&p->seat, false, false, true, p->seat.waiting);
        else
                turn_seat_set(&p->seat, true, true, p->seat.waiting > 1, p->seat.waiting - MIN(p->seat.waiting, UINT64_C(1)));
}

static void begin_found(uint64_t running_max, uint64_t waiting_max, size_t found) {
        turns = (Turns){};
        n_order = 0;
        turns_limit(&turns, running_max, waiting_max);
        for (size_t i = 0; i < 8; i++) {
                players[i] = (Player){};
                turn_seat_open(&players[i].seat, &turns, i < 4 ? ALICE : BOB, false, i < found, on_begin, players + i);
        }
}

static void begin(uint64_t running_max, uint64_t waiting_max) {
        begin_found(running_max, waiting_max, 0);
}

/* Whatever waits could begin. */
static void set(Player *p, bool ready, bool running, uint64_t waiting) {
        turn_seat_set(&p->seat, ready, running, waiting > 0, waiting);
}

static void wait_for(Player *p, uint64_t n) {
        set(p, true, p->seat.running, p->seat.waiting + n);
}

static void end_turn(Player *p) {
        CHECK(p->seat.running);
        set(p, true, false, p->seat.waiting);
}

static void test_line(void) {
        begin(2, 100);
        for (size_t i = 0; i < 4; i++)
                wait_for(players + i, 2);
        CHECK_INT(turns.running, 2);
        CHECK_INT(turns.waiting, 6);
        CHECK(players[0].seat.running && players[1].seat.running && players[2].turns == 0);
        end_turn(players + 1);
        CHECK(players[2].seat.running && !players[1].seat.running);
        end_turn(players + 0);
        CHECK(players[3].seat.running);
        /* Those that had one stand behind. */
        end_turn(players + 3);
        end_turn(players + 2);
        CHECK(order[4] == players + 1 && order[5] == players + 0);
        CHECK_INT(turns.running, 2);
        for (size_t i = 0; i < 4; i++)
                for (unsigned n = 0; n < 2 && (players[i].seat.running || players[i].seat.waiting > 0); n++)
                        if (players[i].seat.running)
                                end_turn(players + i);
        CHECK(turns.running + turns.waiting <= 2);
}

static void test_one_turn_each(void) {
        begin(8, 100);
        wait_for(players, 5);
        CHECK_INT(turns.running, 1);
        CHECK_INT(turns.waiting, 4);
        for (unsigned i = 2; i <= 5; i++) {
                end_turn(players);
                CHECK_INT(players[0].turns, i);
        }
        end_turn(players);
        CHECK_INT(turns.running, 0);
        CHECK(!turns.first && !turns.last);
}

static void test_not_ready(void) {
        begin(1, 100);
        set(players, false, false, 3);
        CHECK_INT(turns.running, 0);
        /* What is on its way is no reason yet. */
        turn_seat_set(&players[1].seat, true, false, false, 1);
        CHECK_INT(turns.running, 0);
        set(players + 1, true, false, 1);
        CHECK(players[1].seat.running);
        /* In the line, and then not. */
        set(players, true, false, 3);
        wait_for(players + 2, 1);
        set(players, false, false, 3);
        end_turn(players + 1);
        CHECK(players[2].seat.running && players[0].turns == 0);
}

static void test_leave(void) {
        begin(1, 100);
        wait_for(players, 2);
        wait_for(players + 1, 2);
        wait_for(players + 2, 2);
        turn_seat_close(&players[1].seat); /* from the middle of the line */
        CHECK_INT(turns.waiting, 3);
        turn_seat_close(&players[0].seat); /* its turn is another's */
        CHECK(players[2].seat.running);
        turn_seat_close(&players[2].seat);
        turn_seat_close(&players[2].seat);
        CHECK(turns.running == 0 && turns.waiting == 0 && !turns.first && !turns.last);
        wait_for(players + 3, 1);
        CHECK(players[3].seat.running);
}

/* One whose turn cannot be begun is nobody's hindrance, and is not asked for ever. */
static void test_failing(void) {
        begin(1, 100);
        wait_for(players, 1);
        players[1].fails = true;
        wait_for(players + 1, 1);
        wait_for(players + 2, 1);
        end_turn(players);
        CHECK_INT(players[1].turns, 1);
        CHECK(players[2].seat.running);
}

static void test_adopted(void) {
        begin_found(2, 100, 3); /* an earlier errandd, with a higher limit, let them begin */
        for (size_t i = 0; i < 3; i++)
                set(players + i, true, true, 1);
        CHECK_INT(turns.running, 3);
        wait_for(players + 3, 1);
        end_turn(players);
        CHECK(!players[3].seat.running && !players[0].seat.running);
        end_turn(players + 1);
        CHECK(players[3].seat.running && turns.running == 2);
        turns_limit(&turns, 4, 100);
        CHECK_INT(turns.running, 4);
        turns_limit(&turns, 1, 100);
        CHECK_INT(turns.running, 4);
}

/* Whoever says that it is in a turn which it was not given: others have theirs, and it stands in line as soon as it says that it is over. */
static void test_claimed(void) {
        begin(1, 100);
        for (size_t i = 0; i < 4; i++)
                turn_seat_set(&players[i].seat, false, true, true, 0);
        CHECK_INT(turns.running, 0);
        wait_for(players + 4, 1);
        CHECK(players[4].seat.running);
        end_turn(players + 4);
        /* Nor does one that is over come back. */
        turn_seat_set(&players[4].seat, false, true, false, 0);
        CHECK_INT(turns.running, 0);
        turn_seat_set(&players[0].seat, true, false, true, 0);
        CHECK(players[0].seat.running && turns.waiting == 0);
}

static void test_queue(void) {
        begin(1, 3);
        CHECK_INT(turn_seat_check(&players[0].seat), 0);
        wait_for(players, 1);
        for (size_t i = 0; i < 3; i++) {
                CHECK_INT(turn_seat_check(&players[1 + i].seat), 0);
                turn_seat_set(&players[1 + i].seat, true, false, false, 1); /* asked counts already */
        }
        CHECK_INT(turn_seat_check(&players[4].seat), -ENOSPC);
        set(players + 1, true, false, 0);
        CHECK_INT(turn_seat_check(&players[4].seat), 0);

        /* Without a queue what can begin at once is taken. */
        begin(2, 0);
        set(players, true, false, 0);
        set(players + 1, true, false, 0);
        set(players + 2, true, false, 0);
        CHECK_INT(turn_seat_check(&players[7].seat), -ENOSPC); /* it is not ready */
        CHECK_INT(turn_seat_check(&players[0].seat), 0);
        turn_seat_set(&players[0].seat, true, false, false, 1);
        CHECK_INT(turn_seat_check(&players[0].seat), -ENOSPC);
        CHECK_INT(turn_seat_check(&players[1].seat), 0);
        wait_for(players + 1, 1);
        CHECK_INT(turn_seat_check(&players[2].seat), -ENOSPC);
}

static void test_shares(void) {
        begin(4, 6);
        for (size_t i = 0; i < 8; i++)
                players[i].seat.shares = true;
        for (size_t i = 0; i < 4; i++)
                wait_for(players + i, 1);
        CHECK_INT(turns.running, 2); /* half */
        CHECK_INT(turns.waiting, 2);
        wait_for(players + 5, 1); /* who stands behind them has a turn that they cannot have */
        CHECK(players[5].seat.running);
        wait_for(players, 1);
        CHECK_INT(turn_seat_check(&players[0].seat), -EDQUOT);
        CHECK_INT(turn_seat_check(&players[6].seat), 0);
        players[0].seat.shares = false; /* an operator asks */
        CHECK_INT(turn_seat_check(&players[0].seat), 0);
        end_turn(players + 1);
        CHECK_INT(turns.running, 3);
        /* One turn in all is not none for anybody. */
        begin(1, 1);
        players[0].seat.shares = true;
        wait_for(players, 1);
        CHECK_INT(turns.running, 1);
}

int main(void) {
        RUN(test_line, "turns go by the line, as many at once as may, and who had one stands at the end");
        RUN(test_one_turn_each, "a session has one turn at a time, and as many as it has prompts");
        RUN(test_not_ready, "who is not ready, or has only asked, gets no turn and holds nobody up");
        RUN(test_leave, "a session that ends gives its turn and its place back");
        RUN(test_failing, "a turn that cannot begin is given to the next");
        RUN(test_adopted, "turns that an earlier errandd let begin count, and new limits count at once");
        RUN(test_claimed, "C204: a turn that was not given takes none from others");
        RUN(test_queue, "no more prompts wait than may, and what need not wait is taken all the same");
        RUN(test_shares, "C204: who is no operator has at most half of the turns and of the places");
        return TEST_END();
}
