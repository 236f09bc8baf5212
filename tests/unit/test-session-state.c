/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/session-state.h"
#include "test.h"

/* The design's sentence, written again as pairs: every other pair is illegal. */
static const struct {
        SessionState from, to;
} legal[] = {
        {SESSION_CREATED, SESSION_STARTING}, {SESSION_STARTING, SESSION_RUNNING},  {SESSION_RUNNING, SESSION_STOPPING},
        {SESSION_STOPPING, SESSION_STOPPED}, {SESSION_RUNNING, SESSION_STOPPED},   {SESSION_STARTING, SESSION_FAILED},
        {SESSION_RUNNING, SESSION_FAILED},   {SESSION_STOPPING, SESSION_FAILED},   {SESSION_STOPPED, SESSION_STARTING},
        {SESSION_FAILED, SESSION_STARTING},  {SESSION_CREATED, SESSION_COLLECTED}, {SESSION_STOPPED, SESSION_COLLECTED},
        {SESSION_FAILED, SESSION_COLLECTED},
};

static void test_moves(void) {
        for (int from = -1; from <= _SESSION_STATE_MAX; from++)
                for (int to = -1; to <= _SESSION_STATE_MAX; to++) {
                        bool expected = false;
                        for (size_t i = 0; i < ELEMENTSOF(legal); i++)
                                expected |= (int) legal[i].from == from && (int) legal[i].to == to;
                        if (session_state_may_move((SessionState) from, (SessionState) to) != expected)
                                test_fail(__FILE__, __LINE__, "%d to %d is%s legal", from, to, expected ? " not" : "");
                }
}

static void test_names(void) {
        for (SessionState s = 0; s < _SESSION_STATE_MAX; s++)
                CHECK_INT(session_state_from_string(session_state_to_string(s)), s);
        CHECK_INT(session_state_from_string("Running"), _SESSION_STATE_INVALID);
        CHECK_INT(session_state_from_string(""), _SESSION_STATE_INVALID);
        CHECK(!session_state_to_string(_SESSION_STATE_MAX));
}

static void test_live(void) {
        /* What may be collected or started has nothing that lives, and the reverse. */
        for (SessionState s = 0; s < SESSION_COLLECTED; s++)
                CHECK_INT(session_state_live(s), !session_state_may_move(s, SESSION_COLLECTED));
        CHECK(!session_state_live(SESSION_COLLECTED));
}

int main(void) {
        RUN(test_moves, "every pair of states: the legal moves and no other");
        RUN(test_names, "state names round-trip");
        RUN(test_live, "a live session is not collected");
        return TEST_END();
}
